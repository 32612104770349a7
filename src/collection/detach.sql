select catchword.detach($1)
