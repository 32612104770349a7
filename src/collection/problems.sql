select problem from catchword.problems($1, $2, $3, $4)
