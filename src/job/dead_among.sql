select distinct key from catchword.dead_job where collection = $1 and key = any($2)
