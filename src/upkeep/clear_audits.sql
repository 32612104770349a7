-- Results of 90 days are kept, and the last whole one of each collection, however old. What was asked of an index that is no longer there
-- cannot be finished.
delete from catchword.audit a
 where coalesce(a.finished_at, a.seen_at) < now() - interval '90 days'
       and a.id <> all (select max(b.id) from catchword.audit b where b.whole and b.finished_at is not null group by b.collection)
    or a.finished_at is null and not exists (select from catchword.collection c where c.name = a.collection and a.targets <@ c.targets)
