select catchword.hasten($1)
