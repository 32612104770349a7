-- The versions of what the view returns for these keys; most of them, in most batches. What it does not return is asked for by wants.sql.
select v.key::text as key, greatest(coalesce(v.revision, 0), c.floor) as version
  from {view} v, catchword.collection c
 where c.name = $1 and v.key = any($2::text[]::{key_type}[])
