-- Tables whose names differ from the one that was given in their schema, their capitals or an s at the end, as they are written in SQL.
select format('%I.%I', n.nspname, c.relname)
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname not like 'pg\_%' and n.nspname not in ('information_schema', 'catchword')
 where c.relkind in ('r', 'p')
   and rtrim(lower(c.relname), 's') = rtrim(lower(translate(substring($1 from '[^.]*$'), '"', '')), 's')
 order by 1
 limit 5
