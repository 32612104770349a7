select t.{key}::text as key, coalesce({period} >= $2, false) as picked
  from only {table} t
 order by t.{key}
 limit $1
