select a.* from catchword.attached($1, $2, $3, $4) as a
