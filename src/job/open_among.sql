-- Which of the keys $2 have an open job, and which of those in $3, all of them possible keys, a touch will come to. There is no index on the key: it reads the
-- collection's part of the queue, so it is asked for many keys at once.
select coalesce(array_agg(distinct key), '{}') || catchword.touched_soon($1, $3)
  from catchword.job
 where collection = $1 and name = 'index' and key = any($2)
