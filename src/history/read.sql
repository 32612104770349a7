-- A minute's row is written when the minute is over; one that lies ahead is of a clock that was.
select minute as at, scheduled::bigint, settled::bigint, written::bigint, pushed_back::bigint, buried::bigint, due::bigint, waiting::bigint,
       round(oldest_seconds::numeric, 3)::float8 as oldest_seconds, round(fresh_p50::numeric, 3)::float8 as fresh_p50,
       round(fresh_p99::numeric, 3)::float8 as fresh_p99
  from catchword.history
 where collection = $1 and minute >= date_trunc('minute', now(), 'UTC') - make_interval(secs => $2) and minute < now()
 order by minute
