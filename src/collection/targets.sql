select targets from catchword.collection where name = $1
