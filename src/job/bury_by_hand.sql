select catchword.bury($1, $2, $3, $4)
