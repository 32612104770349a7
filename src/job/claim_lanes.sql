-- The next due jobs of the lanes $3 of one priority, each lane behind a mark of its own and so many of it as it says, locked for this transaction.
-- A search of the index for each lane; locked jobs are another worker's.
select next.*
  from unnest($3::smallint[], $4::timestamptz[], $5::bigint[], $6::bigint[]) as lanes (lane, enqueued_at, id, most)
 cross join lateral (
   select id, key, priority, enqueued_at, scheduled_at, now() as claimed_at, attempts, unanswered, tag, traceparent, expires_at <= now() as expired, lane
     from catchword.job
    where job.collection = $1
      and job.name = 'index'
      and job.priority = $2
      and job.lane = lanes.lane
      and (job.enqueued_at, job.id) > (lanes.enqueued_at, lanes.id)
      and job.scheduled_at <= now()
    order by job.enqueued_at, job.id
    limit lanes.most
      for update skip locked) as next
