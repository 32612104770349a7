-- Asks for one audit: of the collection that was not compared for the longest time, if that is longer than $2 seconds.
select catchword.ask_audit(due.name, false, 'schedule') as id, 'schedule' as reason
  from (
    select c.name
      from catchword.collection c
      cross join lateral (select coalesce(max(a.asked_at), c.attached_at) as at from catchword.audit a where a.collection = c.name and a.whole) as last
     where c.name = any($1) and c.targets <> '{}' and last.at < now() - make_interval(secs => $2)
     order by last.at, c.name
     limit 1
  ) as due
