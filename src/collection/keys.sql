-- A page of the table's keys behind the cursor, hidden rows too, in the order of the key's own type. One row, since a row for each key
-- would cost more than the keys; its last key is there if the page is full.
select coalesce(array_agg(page.key), '{}') as keys, (array_agg(page.key))[$2::integer] as last
  from (
    select {t_key} as key
      from {rows} t
     where {t_after $1}
     order by {t_columns}
     limit $2
  ) as page
