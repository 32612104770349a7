-- Of these keys, those that have neither a row nor the record of a delete. The highest record counts: an even one is that of a touch, and
-- then the row is gone without a trace.
select k
  from unnest($2::text[]) as given (k)
 where not exists (select from {rows} t where {t_is given.k})
   and coalesce((select d.revision % 2 = 0 from catchword.record d where d.collection = $1 and d.key = given.k order by d.revision desc limit 1), true)
