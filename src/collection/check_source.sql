select catchword.check_source($1, catchword.named($2), $3, $4, $5, $6)
