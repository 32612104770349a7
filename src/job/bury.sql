-- Moved in one statement: a job is always in one of the two tables. A key has one dead letter: the newest burial tells of all its jobs.
with moved as (
  delete from catchword.job
   using unnest($1::bigint[], $2::text[], $3::text[]) as burial (id, reason, error)
   where job.id = burial.id
  returning job.id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts + 1 as attempts, burial.error, traceparent, cursor, burial.reason, reindex
),
replaced as (
  delete from catchword.dead_job using moved
   where dead_job.key = moved.key and dead_job.collection = moved.collection and dead_job.name = moved.name
)
insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, reason, reindex)
select distinct on (name, collection, key)
       id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, error, traceparent, cursor, reason,
       max(abs(reindex)) over (partition by name, collection, key)
  from moved
 order by name, collection, key, attempts desc, id
