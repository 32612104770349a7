-- Tables that the planner takes for large, or that nobody has counted and that have over a megabyte. In a small one every index costs the
-- same, and the plan says nothing; so too in one that was counted when all its rows had been deleted. A table that somebody has locked is not
-- asked for its size: that would wait for them.
select c.relname::text from pg_catalog.pg_class c
 where c.relkind in ('r', 'm', 'p')
   and case when c.relkind = 'p' then catchword.about_rows(c.oid) > 10000
            when c.reltuples > 10000 then true
            when c.reltuples >= 0 then false
            when exists (select from pg_catalog.pg_locks l
                          where l.relation = c.oid and l.locktype = 'relation' and l.mode = 'AccessExclusiveLock' and l.granted) then false
            else pg_catalog.pg_relation_size(c.oid) > 1000000 end
