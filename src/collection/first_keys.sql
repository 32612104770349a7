-- the first page: a cursor that may be null would make one plan for both, which reads from the beginning each time
select t.{key}::text as key, true as picked
  from only {table} t
 order by t.{key}
 limit $1
