-- Which of the collections $1 have jobs that are due later than any wait is long, or were made later than now: among the first of the
-- queue, and at the end of the live ones.
select c.name
  from unnest($1::text[]) as c (name)
 where exists (select from (select scheduled_at, expires_at from catchword.job where collection = c.name order by priority, enqueued_at, id limit 1000) as first
                where first.scheduled_at > now() + interval '2 hours' and first.scheduled_at > first.expires_at - interval '30 days')
    or exists (select from catchword.job where collection = c.name and priority in (catchword.priority_quick(), catchword.priority_live()) and enqueued_at > now() + interval '5 minutes')
 order by 1
