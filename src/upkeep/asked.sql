-- Audits that were asked for and are not finished, the oldest first; an operator's own is left to the operator, a rebuild's to the rebuild.
select a.id, a.reason
  from catchword.audit a
  join catchword.collection c on c.name = a.collection and a.targets <@ c.targets
 where a.finished_at is null and a.reason in ('schedule', 'lost writes', 'another server') and a.collection = any($1)
 order by a.id
 limit 20
