-- What Postgres wants of these keys now, with their documents, versions and targets of one snapshot: all that direct writes ask. Key by
-- key, for there are few. `offset 0` keeps a body from being built twice. Documents beyond $3 bytes together are not fetched.
select key, targets, version, gone, case when pg_catalog.sum(pg_catalog.octet_length(body)) over (rows unbounded preceding) <= $3 then body end as body
  from (
    select k.key, w.targets, built.version, built.body,
           case when built.version is null then coalesce(
             (select greatest(t.{revision}, c.floor, recorded.version) + 1 from {rows} t where {t_is k.key}),
             case when recorded.revision % 2::bigint = 1 then recorded.revision end) end as gone
      from catchword.collection w, catchword.collection c, pg_catalog.unnest($2::text[]) as k (key)
      left join lateral (
        select r.revision, r.revision + r.revision % 2::bigint as version from catchword.record r where r.collection = $1 and r.key = k.key order by r.revision desc limit 1
      ) as recorded on true
      left join lateral (
        select greatest(v.revision, c.floor, recorded.version) as version, v.body::text as body from {view} v where {v_is k.key} offset 0
      ) as built on true
     where w.name = $1 and c.name = {member}
  ) as found
