-- How long the first due job in walk order has been due: of live writes, and of bulks. Claimed ones included.
select max(first.seconds) filter (where p.priority = 1) as live_seconds, max(first.seconds) filter (where p.priority > 1) as bulk_seconds
  from (values (1), (100), (1000)) as p (priority)
  cross join lateral (select extract(epoch from now() - scheduled_at)::float8 as seconds from catchword.job
                       where collection = $1 and job.priority = p.priority and scheduled_at <= now()
                       order by enqueued_at, id limit 1) as first
