select key, revision, deleted_at, back from catchword.old_records($1, $2, $3, $4, $5)
