select catchword.ask_audit($1, $2, $3)
