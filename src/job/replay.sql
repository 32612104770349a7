-- Scheduled again as a new demand, with no attempts; a job is always in one of the two tables. The journal's line commits with it.
with replayed as (
  delete from catchword.dead_job
   where ($1::bigint[] is null or id = any($1))
     and ($2::text is null or collection = $2)
     and ($3::text is null or reason = $3)
     and ($4::text is null or tag = $4)
     and ($5::timestamptz is null or died_at >= $5)
  returning name, collection, key, priority, tag, traceparent
),
scheduled as (
  insert into catchword.job (name, collection, key, priority, tag, traceparent)
  select name, collection, key, priority, tag, traceparent from replayed
),
noted as (
  insert into catchword.journal (who, what, collection, detail, count)
  select $6, 'replay', $2, $7, count(*) from replayed having count(*) > 0
)
select count(*) from replayed
