-- as keys.sql, and only keys of rows of the period. All rows of a page are read, so a page takes its time whatever it picks
select coalesce(array_agg(page.key) filter (where page.picked), '{}') as keys, (array_agg(page.key))[$2::integer] as last
  from (
    select t.{key}::text as key, {period} >= $3 as picked
      from only {table} t
     where t.{key} > $1::text::{key_type}
     order by t.{key}
     limit $2
  ) as page
