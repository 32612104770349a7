select catchword.attach($1, catchword.named(catchword.in_schema($2, catchword.schemas_of($2), $12)), $3, $4, $5, $6, $7, $8, $9, $10, $11, p_schema => $12)
