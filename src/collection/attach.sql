select catchword.attach($1, catchword.named(catchword.in_schema($2, catchword.schemas_of($2), $13)), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, p_schema => $13)
