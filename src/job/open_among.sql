-- Which of these keys have an open job, and whether a touch is open that may concern any of them; one that fails will
-- look at nobody soon. There is no index on the key: it reads
-- the collection's part of the queue, so it is asked for many keys at once.
select coalesce(array_agg(distinct key) filter (where name = 'index'), '{}') as keys, coalesce(bool_or(name = 'touch' and attempts = 0), false) as touches
  from catchword.job
 where collection = $1 and (name = 'touch' or key = any($2))
