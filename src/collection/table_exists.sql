select catchword.named($1) is not null
