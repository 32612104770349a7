select id, collection, tag, value, scheduled, rewrite, scope is null and period_from is null and keys is null as whole, started_at, started_by
  from catchword.reindex
 where finished_at is null
   and ($1::text is null or collection = $1)
   and ($2::bigint is null or id = $2)
 order by id desc
 limit 20
