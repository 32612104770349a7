-- The highest revision among the rows of the table's last pages, where new and changed ones mostly are, and of a sample of its pages:
-- a column without an index is never read whole.
select max(seen.revision) as highest, count(*) as looked, case when has_sequence_privilege('catchword.revision', 'usage, select') then coalesce(pg_sequence_last_value('catchword.revision'::regclass), 0) else 9223372036854775807 end as last_value
  from (
    select t.ctid, t.{revision} as revision from {rows} t where t.ctid >= $1::text::tid
    union
    select t.ctid, t.{revision} from {rows} t tablesample system ($2)
  ) as seen
