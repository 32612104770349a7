select id, host, version, collections, blocked, breaker, trouble, lane, extract(epoch from now() - seen_at)::float8 as seen_seconds_ago,
       extract(epoch from now() - coalesce(passed_at, started_at))::float8 as passed_seconds_ago
  from catchword.worker
 order by seen_at desc, id
 limit 100
