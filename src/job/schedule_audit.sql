select catchword.schedule_audit($1, $2, $3, $4)
