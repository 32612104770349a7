select key from catchword.document_id where collection = $1 and (key = $2 or id = $2) order by key <> $2 limit 1
