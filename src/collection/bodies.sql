-- The documents of these keys, each with the version of the same snapshot. Sizes are measured here: a document above $3 bytes is
-- never fetched, and bodies beyond $4 bytes together are left for another round. `offset 0` keeps the body from being built twice.
select key, version, octets,
       case when octets <= $3 and sum(octets) filter (where octets <= $3) over (order by key rows unbounded preceding) - octets < $4 then body end as body
  from (
    select v.key::text as key, greatest(coalesce(v.revision, 0), c.floor) as version, octet_length(v.body::text)::bigint as octets, v.body::text as body
      from {view} v, catchword.collection c
     where c.name = $1 and v.key = any($2::text[]::{key_type}[])
    offset 0
  ) as built
