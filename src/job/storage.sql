-- The identity's sequence is drawn from once per job, so its last value counts the jobs ever scheduled.
select pg_catalog.pg_stat_get_dead_tuples('catchword.job'::regclass) as dead_tuples,
       pg_catalog.pg_table_size('catchword.job'::regclass) as table_bytes,
       pg_catalog.pg_indexes_size('catchword.job'::regclass) as index_bytes,
       coalesce(pg_catalog.pg_sequence_last_value(pg_catalog.pg_get_serial_sequence('catchword.job', 'id')::regclass), 0) as scheduled
