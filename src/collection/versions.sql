-- The versions of what the view returns for these keys; most of them, in most batches. What it does not return is asked for by wants.sql.
-- One row, since a row for each key would cost more than the versions.
select coalesce(array_agg(v.key::text), '{}') as keys, coalesce(array_agg(greatest(coalesce(v.revision, 0), c.floor)), '{}') as versions
  from {view} v, catchword.collection c
 where c.name = $1 and v.key = any($2::{key_array})
