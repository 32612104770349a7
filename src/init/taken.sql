-- Which of these names a schema has for something that is no view of ours.
select c.relname::text
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = $1 and c.relname = any($2::text[])
   and (c.relkind <> 'v' or coalesce(obj_description(c.oid, 'pg_class'), '') not like 'catchword%')
 order by 1
