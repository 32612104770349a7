-- Settings that the promises rest on, after pinned.sql.
select set_config('catchword.path', concat_ws(', ', 'pg_catalog', nullif(current_setting('catchword.path'), ''), 'pg_temp'), false),
       set_config('row_security', 'off', false),
       set_config('synchronous_commit', 'on', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('statement_timeout', '30s', false),
       set_config('lock_timeout', '5s', false),
       set_config('idle_in_transaction_session_timeout', '60s', false),
       set_config('client_min_messages', 'warning', false),
       set_config('tcp_keepalives_idle', '20', false),
       set_config('tcp_keepalives_interval', '10', false),
       set_config('tcp_keepalives_count', '3', false),
       -- only since 17
       (select set_config('transaction_timeout', '60s', false) where current_setting('server_version_num')::integer >= 170000);
