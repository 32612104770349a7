select coalesce(array_agg(page.key) filter (where page.picked), '{}') as keys, (array_agg(page.key))[$1::integer] as last
  from (
    select {t_key} as key, {period} >= $2 as picked
      from {rows} t
     order by {t_columns}
     limit $1
  ) as page
