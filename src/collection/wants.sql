-- What Postgres wants of these keys. One statement, so one snapshot: of two, a row hidden in the first could be taken for the newer
-- one of the second. A row that the view does not return is in the second part only; a deleted one in the third.
select 'present' as state, v.key::text as key, greatest(coalesce(v.revision, 0), c.floor) as version
  from {view} v, catchword.collection c
 where c.name = $1 and v.key = any($2::text[]::{key_type}[])
union all
select 'row', t.{key}::text, greatest(coalesce(t.{revision}, 0), c.floor) + 1
  from only {table} t, catchword.collection c
 where c.name = $1 and t.{key} = any($2::text[]::{key_type}[])
union all
select 'record', d.key, d.revision
  from catchword.tombstone d
 where d.collection = $1 and d.key = any($2::text[])
