-- Who keeps vacuum from removing dead rows of this database, the oldest first. Slots and standbys have no clock but that of an unused
-- slot, which is there since 17. A role without pg_read_all_stats sees its own sessions only.
select by, who, seconds, transactions
  from (
    select 'session' as by, format('session %s of %s (%s)', pid, coalesce(usename, 'the server'), coalesce(nullif(application_name, ''), backend_type)) as who,
           extract(epoch from now() - xact_start)::float8 as seconds, age(coalesce(backend_xmin, backend_xid))::bigint as transactions
      from pg_catalog.pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and (backend_xmin is not null or backend_xid is not null)
       and backend_type not in ('walsender', 'autovacuum worker') and pid not in (select pid from pg_catalog.pg_stat_progress_vacuum)
    union all
    select 'prepared', format('prepared transaction %s of %s', gid, owner), extract(epoch from now() - prepared)::float8, age(transaction)::bigint
      from pg_catalog.pg_prepared_xacts
     where database = current_database()
    union all
    select 'slot', format('replication slot %s', slot_name), extract(epoch from now() - (to_jsonb(s) ->> 'inactive_since')::timestamptz)::float8, age(xmin)::bigint
      from pg_catalog.pg_replication_slots s
     where xmin is not null
    union all
    select 'standby', format('standby %s (%s)', coalesce(client_addr::text, 'on this machine'), application_name), null, age(backend_xmin)::bigint
      from pg_catalog.pg_stat_replication
     where backend_xmin is not null
  ) as held
 order by coalesce(seconds, transactions) desc, who
 limit 20
