select catchword.keep_records($1, $2, $3)
