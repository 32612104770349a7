select id, tag, attempts, reason, last_error, died_at
  from catchword.dead_job
 where collection = $1 and key = $2
 order by died_at desc, id
 limit 20
