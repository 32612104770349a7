-- What Postgres wants of these keys. One statement, so one snapshot: of two, a row hidden in the first could be taken for the newer
-- one of the second. It is asked for what versions.sql did not return; what is not in the view now either is looked for in the table and
-- among the records, key by key.
with present as materialized (
  select {v_key} as key, v.revision from {view} v where {v_at $2}
),
wanted as (
  select given.key, c.floor, recorded.revision as recorded
    from catchword.collection c, pg_catalog.unnest({given $2}) as given (key)
    left join lateral (select r.revision from catchword.record r where r.collection = $1 and r.key = given.key order by r.revision desc limit 1) as recorded on true
   where c.name = {member}
),
absent as (
  select wanted.key, wanted.floor, wanted.recorded from wanted where not exists (select from present where present.key = wanted.key)
)
select 'present' as state, present.key, greatest(present.revision, wanted.floor, wanted.recorded + wanted.recorded % 2::bigint) as version
  from present join wanted on wanted.key = present.key
union all
select 'row', absent.key, greatest(hidden.revision, absent.floor, absent.recorded + absent.recorded % 2::bigint) + 1
  from absent
 cross join lateral (select t.{revision} as revision from {rows} t where {t_is absent.key} offset 0) as hidden
union all
-- an even one is the touch of a row that is gone without a trace: nobody recorded the delete
select 'record', absent.key, absent.recorded
  from absent
 where absent.recorded % 2::bigint = 1
