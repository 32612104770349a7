select coalesce(reloptions, '{}') as options from pg_catalog.pg_class where oid = 'catchword.job'::regclass
