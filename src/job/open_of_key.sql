-- for one person at a terminal: there is no index on the key, so it reads the collection's part of the queue
select id, tag, priority, attempts, last_error, enqueued_at, scheduled_at, expires_at, scheduled_at <= now() as due
  from catchword.job
 where collection = $1 and key = $2 and name = 'index'
 order by priority, enqueued_at, id
 limit 20
