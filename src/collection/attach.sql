select catchword.attach($1, $2::text::regclass, $3, $4, $5, $6, $7, $8, $9, $10, $11)
