select jobs, touched, slow from catchword.expand_touches($1, $2)
