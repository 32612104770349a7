-- As claim.sql: the next due jobs in the order of time, without those that the marks $7 and $8 of the lanes stand behind. They were claimed by their lane.
select id, key, priority, enqueued_at, scheduled_at, now() as claimed_at, attempts, unanswered, tag, traceparent, expires_at <= now() as expired, lane
  from catchword.job
 where collection = $1
   and name = 'index'
   and (priority, enqueued_at, id) > ($2, $3, $4)
   and priority < $6
   and scheduled_at <= now()
   -- the first comparison is enough for nearly all that is passed over
   and (lane is null or enqueued_at >= ($7::timestamptz[])[lane + 1] and (enqueued_at, id) > (($7::timestamptz[])[lane + 1], ($8::bigint[])[lane + 1]))
 order by priority, enqueued_at, id
 limit $5
   for update skip locked
