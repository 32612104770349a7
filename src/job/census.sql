-- Bounded: at millions of jobs a full count takes seconds and holds a snapshot. The first $2 jobs of each priority in walk order, locked
-- ones included; where there are that many, the counts mean "at least".
with recursive priorities as (
  (select priority from catchword.job where collection = $1 order by priority limit 1)
  union all
  select (select job.priority from catchword.job where job.collection = $1 and job.priority > priorities.priority order by job.priority limit 1)
    from priorities where priorities.priority is not null
),
-- how long a job waits for its direct write; where the collection does not say, store_and_schedule gives it a minute
delay as (
  select make_interval(secs => coalesce((select nullif(delay_seconds, 0) from catchword.collection where name = $1), 60)) as length
),
counted as (
  select p.priority,
         count(*) as jobs,
         count(*) filter (where first.scheduled_at <= now()) as due,
         count(*) filter (where first.expires_at <= now()) as expired,
         min(first.scheduled_at) filter (where first.scheduled_at <= now()) as oldest_due,
         -- due, or was due and was put off: by 30 s at most where Elasticsearch could not say, by more where the document was refused
         min(least(first.enqueued_at, now())) filter (where first.scheduled_at <= now()
           or first.attempts > 0
           or first.scheduled_at <= now() + interval '30 seconds' and first.enqueued_at + delay.length <= now()) as oldest_change
    from (select priority from priorities where priority is not null limit 20) as p
    cross join delay
    cross join lateral (select scheduled_at, enqueued_at, attempts, expires_at from catchword.job
                         where collection = $1 and job.priority = p.priority
                         order by enqueued_at, id limit $2) as first
   group by p.priority
)
select coalesce(sum(due), 0)::bigint as due,
       coalesce(sum(jobs - due), 0)::bigint as waiting,
       coalesce(sum(expired), 0)::bigint as expired,
       (select count(*) from (select from catchword.dead_job where collection = $1 limit $2) as dead) as dead,
       extract(epoch from now() - min(oldest_due))::float8 as oldest_due_seconds,
       extract(epoch from now() - min(oldest_due) filter (where priority <= catchword.priority_live()))::float8 as oldest_live_seconds,
       extract(epoch from now() - min(oldest_due) filter (where priority > catchword.priority_live()))::float8 as oldest_bulk_seconds,
       extract(epoch from now() - min(oldest_change) filter (where priority <= catchword.priority_live()))::float8 as oldest_change_seconds,
       (select greatest(extract(epoch from now() - s.since), 0)::float8 from catchword.standstill s where s.collection = $1) as still_seconds,
       (select coalesce(s.why, (select last_error from catchword.job where collection = $1 order by priority, enqueued_at, id limit 1))
          from catchword.standstill s where s.collection = $1) as still_why,
       failing.touches as failing_touches, failing.seconds as failing_touch_seconds, failing.error as failing_touch_error,
       coalesce(bool_or(jobs >= $2), false) as estimated
  from (select count(*) as touches, extract(epoch from now() - min(enqueued_at))::float8 as seconds, (array_agg(last_error order by enqueued_at, id))[1] as error
          from (select enqueued_at, id, attempts, last_error from catchword.job where name = 'touch' and collection = $1 order by enqueued_at, id limit $2) as touch
         where attempts > 0 or last_error is not null) as failing
  left join counted on true
 group by failing.touches, failing.seconds, failing.error
