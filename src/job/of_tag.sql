select id, key, enqueued_at, attempts, last_error
  from catchword.job
 where collection = $1 and priority = catchword.priority_whole() and tag = $2 and (enqueued_at, id) > ($3, $4)
 order by enqueued_at, id
 limit $5
