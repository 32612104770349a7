-- the first page: a cursor that may be null would make one plan for both, which reads from the beginning each time
select coalesce(array_agg(page.key), '{}') as keys, (array_agg(page.key))[$1::integer] as last
  from (
    select {t_key} as key
      from {rows} t
     order by {t_columns}
     limit $1
  ) as page
