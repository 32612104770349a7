-- Does the view $1, or a view or rule below it, read the column $3 of the table $2? This can be told of an empty table too.
with recursive below (relation) as (
  select catchword.named($1)::oid
  union
  select d.refobjid
    from below b
    join pg_catalog.pg_rewrite r on r.ev_class = b.relation
    join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
)
select exists (
  select from below b
    join pg_catalog.pg_rewrite r on r.ev_class = b.relation
    join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
    join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
   where d.refobjid = catchword.named($2)::oid and a.attname = $3)
