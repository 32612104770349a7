-- The last of the next $2 keys of the table behind $1, and one of these that the view returns more than once, if there is one.
with page as materialized (
  select t.{key} as key from only {table} t where ($1::text is null or t.{key} > $1::text::{key_type}) order by t.{key} limit $2
)
select (select key::text from page order by page.key desc limit 1) as last,
       (select v.key::text from {view} v where v.key = any(array(select page.key from page)) group by v.key having pg_catalog.count(*) > 1 limit 1) as doubled
