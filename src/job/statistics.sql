-- Does the planner know how the rows of $1 are spread? Not before the first analyze, nor just after millions of rows came or went. And how
-- many pages there are, for a sample. From catalogs and counters alone.
select pages.now as pages,
       c.reltuples > 0
         and pages.now < 1.5 * c.relpages
         and pg_catalog.pg_stat_get_mod_since_analyze(c.oid) < 0.2 * c.reltuples
         and exists (select from pg_catalog.pg_stats s where s.schemaname = 'catchword' and s.tablename = c.relname and s.attname = 'collection') as fresh
  from pg_catalog.pg_class c
  cross join lateral (select pg_catalog.pg_relation_size(c.oid) / current_setting('block_size')::bigint as now) as pages
 where c.oid = $1::regclass
