-- Names are quoted by Postgres itself. A table or view that is gone yields null, which is an error and never "no rows".
select c.name, c.key_type, c.targets, c.period::text as period,
       (select format('%I.%I', n.nspname, r.relname) from pg_catalog.pg_class r join pg_catalog.pg_namespace n on n.oid = r.relnamespace where r.oid = c.source) as table_name,
       format('%I', c.key_column) as key_name,
       format('%I', c.revision_column) as revision_name,
       -- a column without a zone is read as UTC, whatever the session's zone
       (select format(case when a.atttypid = 'timestamptz'::regtype then 't.%I' else '(t.%I::timestamp at time zone ''utc'')' end, a.attname)
          from pg_catalog.pg_attribute a where a.attrelid = c.source and a.attname = c.period and a.attnum > 0 and not a.attisdropped) as period_name,
       c.view as view_name,
       to_regclass(c.view) is not null as view_exists,
       (select format('since %s by %s: %s', to_char(p.since at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'), p.by, p.reason) from catchword.pause p where p.collection = c.name) as paused
  from catchword.collection c
 where c.name = $1
