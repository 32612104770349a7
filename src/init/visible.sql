-- Which of these tables are found without their schema, by the role's own path.
select t.id from pg_catalog.unnest($1::bigint[]) as t (id) where pg_catalog.pg_table_is_visible(t.id::oid)
