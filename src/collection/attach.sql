select catchword.attach($1, catchword.named($2), $3, $4, $5, $6, $7, $8, $9, $10, $11)
