select catchword.attach_statements($1, $2::text::regclass, $3, $4, $5, $6, $7)
