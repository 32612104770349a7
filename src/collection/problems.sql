select problem from catchword.broken_triggers($1)
