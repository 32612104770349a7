select catchword.check_source($1, catchword.named(catchword.in_schema($2, catchword.schemas_of($2), $7)), $3, $4, $5, catchword.touches_in($6, catchword.schemas_of($2), $7))
