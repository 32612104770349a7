-- The next due jobs behind the cursor ($2, $3, $4) and up to the end ($6, $7, $8), locked for this transaction. The row comparisons are index conditions: what
-- lies before the cursor, dead tuples included, is not read again. Locked jobs are another worker's.
select id, key, priority, enqueued_at, scheduled_at, now() as claimed_at, attempts, unanswered, tag, traceparent, expires_at <= now() as expired, lane
  from catchword.job
 where collection = $1
   and name = 'index'
   and (priority, enqueued_at, id) > ($2, $3, $4)
   and (priority, enqueued_at, id) <= ($6, $7, $8)
   and scheduled_at <= now()
 order by priority, enqueued_at, id
 limit $5
   for update skip locked
