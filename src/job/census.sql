-- Bounded: at millions of jobs a full count takes seconds and holds a snapshot. The first $2 jobs of each priority in walk order, locked
-- ones included; where there are that many, the counts mean "at least".
with recursive priorities as (
  (select priority from catchword.job where collection = $1 order by priority limit 1)
  union all
  select (select job.priority from catchword.job where job.collection = $1 and job.priority > priorities.priority order by job.priority limit 1)
    from priorities where priorities.priority is not null
),
counted as (
  select p.priority,
         count(*) as jobs,
         count(*) filter (where first.scheduled_at <= now()) as due,
         count(*) filter (where first.expires_at <= now()) as expired,
         min(first.scheduled_at) filter (where first.scheduled_at <= now()) as oldest_due
    from (select priority from priorities where priority is not null limit 20) as p
    cross join lateral (select scheduled_at, expires_at from catchword.job
                         where collection = $1 and job.priority = p.priority
                         order by enqueued_at, id limit $2) as first
   group by p.priority
)
select coalesce(sum(due), 0)::bigint as due,
       coalesce(sum(jobs - due), 0)::bigint as waiting,
       coalesce(sum(expired), 0)::bigint as expired,
       (select count(*) from (select from catchword.dead_job where collection = $1 limit $2) as dead) as dead,
       extract(epoch from now() - min(oldest_due))::float8 as oldest_due_seconds,
       extract(epoch from now() - min(oldest_due) filter (where priority <= 1))::float8 as oldest_live_seconds,
       extract(epoch from now() - min(oldest_due) filter (where priority > 1))::float8 as oldest_bulk_seconds,
       coalesce(bool_or(jobs >= $2), false) as estimated
  from counted
