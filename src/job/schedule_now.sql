select catchword.schedule_audit($1, $2, now(), 0)
