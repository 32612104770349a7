-- How long ago all of a collection was compared, or else attached.
select c.name,
       extract(epoch from now() - greatest(c.attached_at, (select max(a.finished_at) from catchword.audit a where a.collection = c.name and a.whole)))::float8 as seconds
  from catchword.collection c
 where c.name = any($1)
