select jobs, touched from catchword.expand_touches($1, $2)
