-- For the next statement, which reads a view: functions that it calls may look names up, and find them by the path that the role has by
-- itself. The statement's own functions are written out, and its operators are Postgres' own for just these types. In a session that is
-- not ours the path stays as it is.
select set_config('search_path', coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path')), true)
