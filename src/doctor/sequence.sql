select s.increment_by, s.cache_size, s.cycle, format_type(s.data_type, null) as data_type, coalesce(s.last_value, 0) as last_value,
       greatest((select max(c.floor) from catchword.collection c), (select i.last_revision from catchword.installation i), 0) as known
  from pg_catalog.pg_sequences s
 where s.schemaname = 'catchword' and s.sequencename = 'revision'
