-- The versions of what the view returns for these keys; most of them, in most batches. What it does not return is asked for by wants.sql.
-- A version is the row's own number, the collection's floor, or the number at or above the key's last record, whichever is highest.
-- One row, since a row for each key would cost more than the versions.
select coalesce(pg_catalog.array_agg({v_key}), '{}') as keys,
       coalesce(pg_catalog.array_agg(greatest(v.revision, c.floor, recorded.revision + recorded.revision % 2::bigint)), '{}') as versions
  from {view} v
  join catchword.collection c on c.name = {member}
  left join lateral (select r.revision from catchword.record r where r.collection = $1 and r.key = {v_key} order by r.revision desc limit 1) as recorded on true
 where {v_at $2}
