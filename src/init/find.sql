-- The table that a name means, looked up by the path that the role has by itself.
select pg_catalog.to_regclass($1)::oid::bigint
