-- Moved in one statement: a job is always in one of the two tables.
with moved as (
  delete from catchword.job
   using unnest($1::bigint[], $2::text[], $3::text[]) as burial (id, reason, error)
   where job.id = burial.id
  returning job.id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts + 1 as attempts, burial.error, traceparent, cursor, burial.reason
)
insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, reason)
select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, error, traceparent, cursor, reason from moved
