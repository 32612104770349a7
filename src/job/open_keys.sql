-- In the order of the walk, so that its index serves it, however long the queue is.
select key
  from catchword.job
 where collection = $1 and name = 'index' and attempts = 0
 order by priority, enqueued_at, id
 limit $2
