-- The changes of each window of $1 seconds, in whole minutes. One collection has a row per minute and session: some thousands are read.
select f.collection, w.seconds, sum(f.changes)::bigint as changes, sum(f.slow)::bigint as slow
  from unnest($1::bigint[]) as w (seconds)
  join catchword.freshness f on f.minute > now() - make_interval(secs => w.seconds)
 group by f.collection, w.seconds
 order by f.collection, w.seconds
