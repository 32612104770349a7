select coalesce(array_agg(page.key) filter (where page.picked), '{}') as keys, (array_agg(page.key))[$1::integer] as last
  from (
    select t.{key}::text as key, {period} >= $2 as picked
      from only {table} t
     order by t.{key}
     limit $1
  ) as page
