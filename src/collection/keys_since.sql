-- as keys.sql; picked says whether a row is of the period. All rows of a page are read, so a page takes its time whatever it picks
select t.{key}::text as key, coalesce({period} >= $3, false) as picked
  from only {table} t
 where t.{key} > $1::text::{key_type}
 order by t.{key}
 limit $2
