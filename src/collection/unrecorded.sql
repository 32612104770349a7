-- Of these keys, those that have neither a row nor the record of a delete.
select k
  from unnest($2::text[]) as given (k)
 where not exists (select from {rows} t where {t_is given.k})
   and not exists (select from catchword.record d where d.collection = $1 and d.key = given.k)
