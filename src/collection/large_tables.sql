-- as the planner believes them to be
select c.relname::text from pg_catalog.pg_class c where c.relkind in ('r', 'm', 'p') and c.reltuples > 10000
