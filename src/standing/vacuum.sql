-- Who keeps vacuum from removing dead rows of this database, the oldest first. A session of another database does not; nor does a vacuum.
-- A logical slot's catalog_xmin keeps catalogs, not jobs. Slots and standbys have no clock but that of an unused slot, which is there
-- since 17. A role without pg_read_all_stats sees its own sessions only.
select by, who, seconds, transactions, name, xmin
  from (
    select 'session' as by, format('session %s of %s (%s)', pid, coalesce(usename, 'the server'), coalesce(nullif(application_name, ''), backend_type)) as who,
           extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, age(coalesce(backend_xmin, backend_xid))::bigint as transactions,
           pid::text as name, backend_xmin::text as xmin
      from pg_catalog.pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and (backend_xmin is not null or backend_xid is not null)
       and backend_type not in ('walsender', 'autovacuum worker') and pid not in (select pid from pg_catalog.pg_stat_progress_vacuum)
    union all
    select 'prepared', format('prepared transaction %s of %s', gid, owner), extract(epoch from clock_timestamp() - prepared)::float8,
           age(transaction)::bigint, gid, transaction::text
      from pg_catalog.pg_prepared_xacts
     where database = current_database()
    union all
    select 'slot', format('replication slot %s', slot_name),
           extract(epoch from clock_timestamp() - (to_jsonb(s) ->> 'inactive_since')::timestamptz)::float8, age(xmin)::bigint,
           slot_name::text, xmin::text
      from pg_catalog.pg_replication_slots s
     where xmin is not null
    union all
    select 'standby', format('standby %s (%s)', coalesce(client_addr::text, 'on this machine'), application_name), null,
           age(backend_xmin)::bigint, pid::text, backend_xmin::text
      from pg_catalog.pg_stat_replication
     where backend_xmin is not null
  ) as held
 order by coalesce(seconds, transactions) desc, who
