-- The columns of these tables. `base` is what a domain or an array comes down to.
with recursive steps (relation, number, type, modifier, is_array) as (
  select a.attrelid, a.attnum, a.atttypid, a.atttypmod, false
    from pg_catalog.pg_attribute a
   where a.attrelid = any($1::bigint[]::oid[]) and a.attnum > 0 and not a.attisdropped
  union all
  select s.relation, s.number, case when t.typtype = 'd' then t.typbasetype else t.typelem end,
         case when t.typtype = 'd' and t.typtypmod <> -1 then t.typtypmod else s.modifier end,
         s.is_array or t.typtype <> 'd'
    from steps s
    join pg_catalog.pg_type t on t.oid = s.type
   where t.typtype = 'd' or t.typcategory = 'A' and t.typelem <> 0
)
select a.attrelid::bigint as relation, a.attname::text as name, quote_ident(a.attname) as quoted,
       format_type(a.atttypid, a.atttypmod) as type_name, b.typname::text as base, b.typtype::text as base_kind,
       b.typcategory::text as category, s.is_array, a.attnotnull as not_null, a.attgenerated <> '' as is_generated,
       case when b.typname in ('varchar', 'bpchar') and s.modifier > 4 then s.modifier - 4 end as length,
       case when b.typname = 'numeric' and s.modifier > 4 then (s.modifier - 4) >> 16 & 65535 end as precision,
       case when b.typname = 'numeric' and s.modifier > 4 then ((s.modifier - 4 & 2047) # 1024) - 1024 end as scale,
       coalesce((select not c.collisdeterministic from pg_catalog.pg_collation c where c.oid = a.attcollation), false) as loose_collation,
       coalesce(col_description(a.attrelid, a.attnum), '') as description,
       array(select m.attname::text
               from pg_catalog.pg_attrdef e
               join pg_catalog.pg_depend d on (d.classid = 'pg_catalog.pg_attrdef'::regclass and d.objid = e.oid
                                               -- before 15 the column itself depends on what it is made of
                                               or d.classid = 'pg_catalog.pg_class'::regclass and d.objid = a.attrelid and d.objsubid = a.attnum)
                                          and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = a.attrelid
               join pg_catalog.pg_attribute m on m.attrelid = a.attrelid and m.attnum = d.refobjsubid and m.attnum <> a.attnum
              where a.attgenerated <> '' and e.adrelid = a.attrelid and e.adnum = a.attnum
              order by m.attnum) as made_of
  from pg_catalog.pg_attribute a
  join steps s on s.relation = a.attrelid and s.number = a.attnum
  join pg_catalog.pg_type b on b.oid = s.type and b.typtype <> 'd' and (b.typcategory <> 'A' or b.typelem = 0)
 order by a.attrelid, a.attnum
