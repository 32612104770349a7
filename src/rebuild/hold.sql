select catchword.rebuild_hold($1, $2, $3)
