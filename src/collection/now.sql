-- What Postgres wants of these keys now, with their documents, versions and targets of one snapshot: all that direct writes ask. Key by
-- key, for there are few. `offset 0` keeps a body from being built twice. Documents beyond $3 bytes together are not fetched.
select key, targets, version, gone, case when sum(octet_length(body)) over (rows unbounded preceding) <= $3 then body end as body
  from (
    select k.key, c.targets, built.version, built.body,
           case when built.version is null then coalesce(
             (select greatest(coalesce(t.{revision}, 0), c.floor) + 1 from only {table} t where t.{key} = k.key::{key_type}),
             (select d.revision from catchword.tombstone d where d.collection = c.name and d.key = k.key)) end as gone
      from catchword.collection c, unnest($2::text[]) as k (key)
      left join lateral (
        select greatest(coalesce(v.revision, 0), c.floor) as version, v.body::text as body from {view} v where v.key = k.key::{key_type} offset 0
      ) as built on true
     where c.name = $1
  ) as found
