select catchword.resume($1, $2)
