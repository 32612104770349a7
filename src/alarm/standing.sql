-- A pause, and how long ago the last whole audit ended or the attaching was.
select (select extract(epoch from now() - p.since)::float8 from catchword.pause p where p.collection = $1) as paused_seconds,
       (select format('by %s: %s', p.by, p.reason) from catchword.pause p where p.collection = $1) as paused_why,
       (select extract(epoch from now() - greatest(c.attached_at, (select max(a.finished_at) from catchword.audit a where a.collection = $1 and a.whole)))::float8
          from catchword.collection c where c.name = $1) as unaudited_seconds
