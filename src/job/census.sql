-- Bounded: at millions of jobs a full count takes seconds and holds a snapshot. A count that reaches $2 means "at least".
-- The age is that of the first due job in walk order, of each priority.
select (select count(*) from (select from catchword.job where collection = $1 and scheduled_at <= now() limit $2) as due) as due,
       (select count(*) from (select from catchword.job where collection = $1 and scheduled_at > now() limit $2) as waiting) as waiting,
       (select count(*) from (select from catchword.dead_job where collection = $1 limit $2) as dead) as dead,
       (select count(*) from (select from catchword.job where collection = $1 and expires_at <= now() limit $2) as expired) as expired,
       (select max(extract(epoch from now() - first.scheduled_at))::float8
          from (values (1), (100), (1000)) as p (priority)
          cross join lateral (select scheduled_at from catchword.job
                               where collection = $1 and job.priority = p.priority and scheduled_at <= now()
                               order by enqueued_at, id limit 1) as first) as oldest_due_seconds
