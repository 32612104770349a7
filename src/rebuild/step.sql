select catchword.rebuild_step($1, $2, $3, $4)
