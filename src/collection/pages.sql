-- The pages of the table, or of its largest partition and of all of them.
select max(pages.here) as largest, sum(pages.here)::bigint as together
  from catchword.collection c
 cross join lateral catchword.tree(c.source) as t
 cross join lateral (select pg_relation_size(t.relation) / current_setting('block_size')::bigint) as pages (here)
 where c.name = $1 and t.leaf
