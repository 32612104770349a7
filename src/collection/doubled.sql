-- The last of the next $2 keys of the table behind $1, and one of these that the view returns more than once, if there is one.
with page as materialized (
  select {t_key} as key, row_number() over (order by {t_columns}) as n from {rows} t where ($1::text is null or {t_after $1}) order by {t_columns} limit $2
)
select (select page.key from page order by page.n desc limit 1) as last,
       (select {v_key} from {view} v where {v_at array(select page.key from page)} group by {v_columns} having pg_catalog.count(*) > 1 limit 1) as doubled
