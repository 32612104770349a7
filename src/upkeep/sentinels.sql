-- What each of these indices last acknowledged, and the next number. Read before the index is looked at: what was acknowledged by now
-- must be there. One that another worker has just renewed is left out.
-- One of an index that is no longer written to is forgotten: another index may get its name.
with forgotten as (
  delete from catchword.sentinel where collection = $1 and target <> all($2)
)
select t.target, s.index_uuid, s.revision, nextval('catchword.revision') + 1 as next
  from unnest($2::text[]) as t (target)
  left join catchword.sentinel s on s.collection = $1 and s.target = t.target
 where s.renewed_at is null or s.renewed_at < now() - interval '45 seconds'
