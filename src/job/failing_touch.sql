select coalesce(last_error, 'no error was recorded')
  from catchword.job
 where collection = $1 and name = 'touch' and (attempts > 0 or last_error is not null)
 order by enqueued_at, id
 limit 1
