-- What these tables are, and what a table could not be attached or read for.
select c.oid::bigint as id, n.nspname::text as schema, c.relname::text as name,
       quote_ident(n.nspname) as quoted_schema, quote_ident(c.relname) as quoted_name,
       c.relkind::text as kind, c.relpersistence::text as persistence,
       (select i.inhparent::regclass::text from pg_catalog.pg_inherits i where c.relispartition and i.inhrelid = c.oid limit 1) as partition_of,
       exists (select from pg_catalog.pg_inherits i
                 join pg_catalog.pg_class above on above.oid = i.inhparent and above.relkind <> 'p'
                where c.oid in (i.inhrelid, i.inhparent)) as inherits,
       c.relrowsecurity as row_security,
       -- as doctor judges it; what nobody has counted is judged by its size
       c.reltuples > 10000 or c.reltuples <= 0 and coalesce(pg_relation_size(c.oid), 0) > 1000000 as large,
       (select t.tgname::text from pg_catalog.pg_trigger t
         where t.tgrelid = c.oid and not t.tgisinternal and t.tgname > 'zzz_catchword_revision' collate "C"
           and t.tgname not like 'zzz\_catchword\_%' and t.tgtype & 1 = 1 and t.tgtype & 2 = 2 and t.tgtype & (4 | 16) <> 0
         order by t.tgname limit 1) as later_trigger
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where c.oid = any($1::bigint[]::oid[])
 order by c.oid
