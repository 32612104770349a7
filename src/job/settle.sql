-- Only the claimed ids: a job added meanwhile survives. Dead letters of a key that is in step now have nothing left to say.
-- What the batch did is counted with it, for the history: $3 changes were seen, $4 of them late, in the buckets $5; $6 documents written, $7 jobs
-- pushed back, $8 buried. Each session counts in a row of its own and waits for nobody.
with counted as (
  insert into catchword.freshness as f (minute, collection, session, changes, slow, settled, written, pushed_back, buried, buckets)
  select date_trunc('minute', now(), 'UTC'), $2, pg_backend_pid(), $3::bigint, $4::bigint, cardinality($1::bigint[]), $6::bigint, $7::bigint, $8::bigint, $5::bigint[]
  on conflict (minute, collection, session) do update
     set changes = f.changes + excluded.changes, slow = f.slow + excluded.slow, settled = f.settled + excluded.settled,
         written = f.written + excluded.written, pushed_back = f.pushed_back + excluded.pushed_back, buried = f.buried + excluded.buried,
         buckets = array(select coalesce(b.before, 0) + coalesce(b.more, 0) from unnest(f.buckets, excluded.buckets) with ordinality as b (before, more, n) order by b.n)
),
settled as (
  delete from catchword.job where id = any($1::bigint[])
  returning collection, key
)
delete from catchword.dead_job using settled
 where dead_job.collection = settled.collection and dead_job.key = settled.key
