select catchword.check_source($1, $2::text::regclass, $3, $4, $5, $6)
