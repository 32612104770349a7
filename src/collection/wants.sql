-- What Postgres wants of these keys. One statement, so one snapshot: of two, a row hidden in the first could be taken for the newer
-- one of the second. It is asked for what versions.sql did not return; what is not in the view now either is looked for in the table and
-- among the deletes, key by key.
with present as materialized (
  select v.key, greatest(coalesce(v.revision, 0), c.floor) as version
    from {view} v, catchword.collection c
   where c.name = $1 and v.key = any($2::{key_array})
),
absent as (
  select wanted.key from unnest($2::{key_array}) as wanted (key) where not exists (select from present where present.key = wanted.key)
)
select 'present' as state, present.key::text as key, present.version
  from present
union all
select 'row', absent.key::text, hidden.version
  from absent
 cross join lateral (select greatest(coalesce(t.{revision}, 0), c.floor) + 1 as version
                       from only {table} t, catchword.collection c
                      where c.name = $1 and t.{key} = absent.key
                     offset 0) as hidden
union all
select 'record', absent.key::text, deleted.revision
  from absent
 cross join lateral (select d.revision from catchword.tombstone d where d.collection = $1 and d.key = absent.key::text offset 0) as deleted
