-- The next due jobs behind the cursor and of a priority below $6, locked for this transaction. The row comparison is an index condition: what lies before the
-- cursor, dead tuples included, is not read again. Locked jobs are another worker's.
select id, key, priority, enqueued_at, scheduled_at, now() as claimed_at, attempts, unanswered, tag, traceparent, expires_at <= now() as expired, lane
  from catchword.job
 where collection = $1
   and name = 'index'
   and (priority, enqueued_at, id) > ($2, $3, $4)
   and priority < $6
   and scheduled_at <= now()
 order by priority, enqueued_at, id
 limit $5
   for update skip locked
