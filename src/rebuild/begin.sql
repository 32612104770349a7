select catchword.rebuild_begin($1, $2, $3, make_interval(secs => $4), $5)
