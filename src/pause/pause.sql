select catchword.pause($1, $3, $2)
