-- What the first due job of collection $1 is, among the first of the queue: bounded, and whoever has it locked.
select first.name::text as name, first.last_error
  from (select name, last_error, scheduled_at, priority, enqueued_at, id from catchword.job
         where collection = $1 order by priority, enqueued_at, id limit 1000) as first
 where first.scheduled_at <= now()
 order by first.priority, first.enqueued_at, first.id
 limit 1
