-- Who needs old row versions of this database. A session of another database does not; nor does a vacuum.
-- A logical slot's catalog_xmin keeps catalogs, not jobs.
select 'session' as by, pid::text as name, extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, backend_xmin::text as xmin
  from pg_catalog.pg_stat_activity
 where datname = current_database()
   and pid <> pg_backend_pid()
   and backend_type not in ('walsender', 'autovacuum worker')
   and pid not in (select pid from pg_catalog.pg_stat_progress_vacuum)
   and (backend_xmin is not null or backend_xid is not null)
union all
select 'prepared', gid, extract(epoch from clock_timestamp() - prepared)::float8, transaction::text
  from pg_catalog.pg_prepared_xacts
 where database = current_database()
union all
select 'slot', slot_name::text, null, xmin::text
  from pg_catalog.pg_replication_slots
 where xmin is not null
union all
select 'standby', pid::text, null, backend_xmin::text
  from pg_catalog.pg_stat_replication
 where backend_xmin is not null
