-- The foreign keys of table $1, those that lead to it, and all others of the tables that those belong to. `largest` is how many rows the
-- statistics know to have the same value: more than that in one document.
with near (relation) as (
  select $1::bigint::oid
  union
  select k.conrelid from pg_catalog.pg_constraint k where k.contype = 'f' and k.conparentid = 0 and k.confrelid = $1::bigint::oid
)
select k.conrelid::bigint as relation, k.confrelid::bigint as refers_to,
       array(select a.attname::text
               from unnest(k.conkey) with ordinality as c (number, nth)
               join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.number
              order by c.nth) as columns,
       array(select a.attname::text
               from unnest(k.confkey) with ordinality as c (number, nth)
               join pg_catalog.pg_attribute a on a.attrelid = k.confrelid and a.attnum = c.number
              order by c.nth) as referred,
       (select (s.most_common_freqs[1] * r.reltuples)::float8
          from pg_catalog.pg_class r
          join pg_catalog.pg_namespace n on n.oid = r.relnamespace
          join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum = k.conkey[array_upper(k.conkey, 1)]
          join pg_catalog.pg_stats s on s.schemaname = n.nspname and s.tablename = r.relname and s.attname = a.attname
         where r.oid = k.conrelid and r.reltuples > 0
         order by s.inherited desc limit 1) as largest
  from pg_catalog.pg_constraint k
  join near on near.relation = k.conrelid
 where k.contype = 'f' and k.conparentid = 0
 order by k.conrelid, k.conkey, k.confrelid, k.conname
