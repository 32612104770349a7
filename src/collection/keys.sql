-- a page of the table's keys behind the cursor, hidden rows too, in the order of the key's own type
select t.{key}::text as key, true as picked
  from only {table} t
 where t.{key} > $1::text::{key_type}
 order by t.{key}
 limit $2
