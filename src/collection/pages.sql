-- The pages of the table, or of its largest partition and of all of them.
select max(pages.here) as largest, sum(pages.here)::bigint as together
  from catchword.tree(to_regclass($1)) as t
 cross join lateral (select pg_relation_size(t.relation) / current_setting('block_size')::bigint) as pages (here)
 where t.leaf
