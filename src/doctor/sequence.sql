select s.increment_by, s.cache_size, s.cycle, format_type(s.data_type, null) as data_type, coalesce(s.last_value, 0) as last_value,
       -- who may not read it sees nothing of it, and cannot tell
       case when has_sequence_privilege('catchword.revision', 'usage, select')
            then greatest((select max(c.floor) from catchword.collection c), (select i.last_revision from catchword.installation i), 0) else 0 end as known
  from pg_catalog.pg_sequences s
 where s.schemaname = 'catchword' and s.sequencename = 'revision'
