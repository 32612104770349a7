-- The documents of these keys, each with the version of the same snapshot. Sizes are measured here: a document above $3 bytes is
-- never fetched, and bodies beyond $4 bytes together are left for another round, in whatever order: nothing is sorted. The first
-- `offset 0` keeps a body from being built twice, the second keeps one that is too large out of the sum's memory.
select key, version, octets,
       case when (pg_catalog.sum(octets) filter (where octets <= $3) over (rows unbounded preceding))::bigint - octets < $4 then body end as body
  from (
    select key, version, pg_catalog.octet_length(body)::bigint as octets, case when pg_catalog.octet_length(body) <= $3 then body end as body
      from (
        select {v_key} as key, greatest(v.revision, c.floor, recorded.revision + recorded.revision % 2::bigint) as version, v.body::text as body
          from {view} v
          join catchword.collection c on c.name = {member}
          left join lateral (select r.revision from catchword.record r where r.collection = $1 and r.key = {v_key} order by r.revision desc limit 1) as recorded on true
         where {v_at $2}
        offset 0
      ) as built
    offset 0
  ) as measured
