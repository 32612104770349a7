-- The numbers that these keys have now, of a row or of its delete, key by key. It is asked where nobody reads the documents.
select k.key,
       coalesce(
         (select greatest(t.{revision}, c.floor, recorded.revision + recorded.revision % 2::bigint) from {rows} t where {t_is k.key}),
         case when recorded.revision % 2::bigint = 1 then recorded.revision end) as number
  from catchword.collection c, pg_catalog.unnest($2::text[]) as k (key)
  left join lateral (select r.revision from catchword.record r where r.collection = $1 and r.key = k.key order by r.revision desc limit 1) as recorded on true
 where c.name = {member}
