select catchword.draw($1, $2)
