-- What the role that works may not see, and the owner of the functions that look for it.
select pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_sessions,
       coalesce((select bool_and(has_function_privilege(n.nspowner, named.function, 'execute'))
                   from pg_catalog.pg_namespace n,
                        (values ('pg_catalog.pg_control_system()'), ('pg_catalog.pg_current_wal_lsn()'), ('pg_catalog.pg_walfile_name(pg_lsn)')) as named (function)
                  where n.nspname = 'catchword'), true) as sees_server
