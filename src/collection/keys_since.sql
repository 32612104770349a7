-- as keys.sql, and only keys of rows of the period. All rows of a page are read, so a page takes its time whatever it picks
select coalesce(array_agg(page.key) filter (where page.picked), '{}') as keys, (array_agg(page.key))[$2::integer] as last
  from (
    select {t_key} as key, {period} >= $3 as picked
      from {rows} t
     where {t_after $1}
     order by {t_columns}
     limit $2
  ) as page
