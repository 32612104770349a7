-- What these tables are, and what a table could not be attached or read for.
select c.oid::bigint as id, n.nspname::text as schema, c.relname::text as name,
       quote_ident(n.nspname) as quoted_schema, quote_ident(c.relname) as quoted_name,
       c.relkind::text as kind, c.relpersistence::text as persistence,
       (select i.inhparent::regclass::text from pg_catalog.pg_inherits i where c.relispartition and i.inhrelid = c.oid limit 1) as partition_of,
       exists (select from pg_catalog.pg_inherits i
                 join pg_catalog.pg_class above on above.oid = i.inhparent and above.relkind <> 'p'
                where c.oid in (i.inhrelid, i.inhparent)) as inherits,
       -- rows that a policy hides from this role
       c.relrowsecurity
         and not exists (select from pg_catalog.pg_roles r
                          where r.rolname = current_user
                            and (r.rolsuper or r.rolbypassrls or not c.relforcerowsecurity and pg_has_role(r.oid, c.relowner, 'usage')))
         as hides_rows,
       quote_ident(current_user) as reader,
       -- as doctor judges it; what nobody has counted is judged by its size
       c.reltuples > 10000 or c.reltuples <= 0 and coalesce(pg_relation_size(c.oid), 0) > 1000000 as large,
       -- the last to change a row, and the collections that the table is in already
       array(select t.tgname::text
               from pg_catalog.pg_trigger t
               join pg_catalog.pg_proc p on p.oid = t.tgfoid
               join pg_catalog.pg_namespace o on o.oid = p.pronamespace and o.nspname <> 'catchword'
              where t.tgrelid = c.oid and not t.tgisinternal and t.tgtype & 1 = 1 and t.tgtype & 2 = 2 and t.tgtype & (4 | 16) <> 0
              order by t.tgname) as triggers,
       array(select regexp_replace(p.proname, '_revision$', '')
               from pg_catalog.pg_trigger t
               join pg_catalog.pg_proc p on p.oid = t.tgfoid and p.proname like '%\_revision'
               join pg_catalog.pg_namespace o on o.oid = p.pronamespace and o.nspname = 'catchword'
              where t.tgrelid = c.oid and not t.tgisinternal
              order by 1) as collections
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where c.oid = any($1::bigint[]::oid[])
 order by c.oid
