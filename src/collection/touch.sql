select catchword.touch($1, $2)
