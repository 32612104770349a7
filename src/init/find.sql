-- The table that a name means, looked up by the role's own path.
select pg_catalog.to_regclass($1)::oid::bigint
