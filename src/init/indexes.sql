-- The indexes of these tables that are whole: every row is in them. An expression is an empty name.
select x.indrelid::bigint as relation, x.indisprimary as is_primary,
       x.indisunique and x.indimmediate and not x.indisexclusion as is_unique,
       m.amname in ('btree', 'hash') as finds_equals,
       array(select coalesce(a.attname::text, '')
               from unnest((x.indkey::smallint[])[0:x.indnkeyatts - 1]) with ordinality as k (number, nth)
               left join pg_catalog.pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.number and k.number > 0
              order by k.nth) as columns
  from pg_catalog.pg_index x
  join pg_catalog.pg_class c on c.oid = x.indexrelid
  join pg_catalog.pg_am m on m.oid = c.relam
 where x.indrelid = any($1::bigint[]::oid[]) and x.indisvalid and x.indpred is null
 order by x.indrelid, not x.indisprimary, x.indnkeyatts, c.relname
