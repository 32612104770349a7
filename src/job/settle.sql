-- Only the claimed ids: a job added meanwhile survives. Dead letters of a key that is in step now have nothing left to say.
-- Of the settled, $3 are changes that count for freshness, $4 of them slow: each session counts in a row of its own and waits for nobody.
with counted as (
  insert into catchword.freshness as f (minute, collection, session, changes, slow)
  select date_trunc('minute', now(), 'UTC'), $2, pg_backend_pid(), $3::bigint, $4::bigint where $3::bigint > 0
  on conflict (minute, collection, session) do update set changes = f.changes + excluded.changes, slow = f.slow + excluded.slow
),
settled as (
  delete from catchword.job where id = any($1)
  returning collection, key
)
delete from catchword.dead_job using settled
 where dead_job.collection = settled.collection and dead_job.key = settled.key
