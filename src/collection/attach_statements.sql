select catchword.attach_statements($1, catchword.named($2), $3, $4, $5, $6, $7)
