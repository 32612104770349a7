select key, revision, recorded_at, fate from catchword.old_records($1, $2, $3, $4, $5)
