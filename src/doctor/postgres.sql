-- `setting` is this session's, `reset_val` what the server, the database or the role would have given it.
select current_setting('server_version') as version,
       current_setting('server_version_num')::integer as version_number,
       pg_is_in_recovery() as standby,
       current_setting('server_encoding') as encoding,
       (select reset_val from pg_catalog.pg_settings where name = 'synchronous_commit') as synchronous_commit,
       (select reset_val from pg_catalog.pg_settings where name = 'session_replication_role') as replication_role,
       array(select format('%s%s%s', split_part(said, '=', 1) || '=' || split_part(said, '=', 2), coalesce(' of role ' || r.rolname, ''), coalesce(' in database ' || d.datname, ''))
               from pg_catalog.pg_db_role_setting s
               left join pg_catalog.pg_roles r on r.oid = s.setrole
               left join pg_catalog.pg_database d on d.oid = s.setdatabase
               cross join unnest(s.setconfig) as said
              where (s.setdatabase = 0 or d.datname = current_database())
                and lower(said) in ('session_replication_role=replica', 'synchronous_commit=off', 'synchronous_commit=local')
              order by 1) as defaults,
       current_setting('fsync') = 'on' as fsync,
       current_setting('full_page_writes') = 'on' as full_page_writes,
       current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on' as autovacuum,
       current_setting('row_security') = 'off' and current_setting('default_transaction_isolation') = 'read committed'
         and current_setting('idle_in_transaction_session_timeout') = '1min' as settings_stay,
       extract(epoch from nullif(current_setting('idle_session_timeout', true), '0')::interval)::float8 as idle_session_seconds,
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
         - (select sum(numbackends) from pg_catalog.pg_stat_database)::bigint as free_connections,
       coalesce((select ssl from pg_catalog.pg_stat_ssl where pid = pg_backend_pid()), false) as ssl,
       clock_timestamp() as clock
