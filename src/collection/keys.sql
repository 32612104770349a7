-- A page of the table's keys behind the cursor, hidden rows too, in the order of the key's own type. One row, since a row for each key
-- would cost more than the keys; its last key is there if the page is full.
select coalesce(array_agg(page.key), '{}') as keys, (array_agg(page.key))[$2::integer] as last
  from (
    select t.{key}::text as key
      from only {table} t
     where t.{key} > $1::text::{key_type}
     order by t.{key}
     limit $2
  ) as page
