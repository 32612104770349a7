-- The table of collection $1: what it is, who writes into it past the triggers, and which of the columns $2 no index begins with.
with recursive below (relation) as (
  select to_regclass(c.view)::oid from catchword.members($1) as c
  union
  select d.refobjid
    from below b
    join pg_catalog.pg_rewrite r on r.ev_class = b.relation
    join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
)
select c.source::text as name, r.relispartition as partition, r.relkind = 'p' as partitioned,
       r.relkind <> 'p' and exists (select from pg_catalog.pg_inherits i where c.source in (i.inhrelid, i.inhparent)) as inherits,
       r.relpersistence <> 'p' as unlogged,
       exists (select from pg_catalog.pg_subscription_rel s where s.srrelid = c.source) as replicated_into,
       array(select b.relation::regclass::text from below b join pg_catalog.pg_class t on t.oid = b.relation
              where t.relrowsecurity order by 1) as secured,
       array(select wanted.name from unnest($2::text[]) as wanted (name)
              where not exists (select from pg_catalog.pg_index x
                                  join pg_catalog.pg_attribute a on a.attrelid = x.indrelid and a.attnum = x.indkey[0]
                                 where x.indrelid = c.source and a.attname = wanted.name and x.indisvalid and x.indpred is null)
              order by 1) as unindexed,
       greatest(catchword.about_rows(c.source), 0) as rows
  from catchword.members($1) as c
  join pg_catalog.pg_class r on r.oid = c.source
 -- of many schemas the largest table
 order by rows desc, c.name
 limit 1
