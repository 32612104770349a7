-- Tables that the planner takes for large, or that nobody has counted and that have over a megabyte. In a small one every index costs the
-- same, and the plan says nothing.
select c.relname::text from pg_catalog.pg_class c
 where c.relkind in ('r', 'm', 'p') and (c.reltuples > 10000 or c.reltuples <= 0 and pg_catalog.pg_relation_size(c.oid) > 1000000)
