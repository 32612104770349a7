-- A rebuild's are left out: it begins them again itself.
select id, collection, reason, looked, asked_at, asked_by
  from catchword.audit
 where finished_at is null and stopped_at is null and reason <> 'rebuild'
   and ($1::text is null or collection = $1)
   and ($2::bigint is null or id = $2)
 order by id desc
 limit 20
