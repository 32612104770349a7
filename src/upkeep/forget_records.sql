select catchword.forget_records($1, $2, $3)
