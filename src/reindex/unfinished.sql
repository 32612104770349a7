select id, collection, tag, value, scheduled, anew, scope is null and period_from is null and keys is null as whole
  from catchword.reindex
 where finished_at is null
 order by id desc
 limit 20
