delete from catchword.dead_job where collection = $1 and key = any($2) and name = 'index' and died_at < now() - make_interval(secs => $3)
