select key, id from catchword.document_id where collection = $1 and id = any($2)
