-- A worker that vanished is forgotten after a day: until then its absence is worth seeing.
with forgotten as (
  delete from catchword.worker where seen_at < now() - interval '1 day' and id <> $1
)
insert into catchword.worker (id, host, version, collections, blocked, breaker, passed_at)
values ($1, $2, $3, $4, $5, $6, case when $7 then now() end)
on conflict (id) do update
   set collections = excluded.collections, blocked = excluded.blocked, breaker = excluded.breaker, seen_at = now(),
       passed_at = coalesce(excluded.passed_at, worker.passed_at)
