select catchword.record_gone($1, $2)
