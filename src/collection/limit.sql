-- The limit of the next statement in milliseconds: $1, or what is left of the 50 s that a transaction may take. A server before 17
-- has no limit for a whole transaction; 0 would be none, and 1 ms says that there is no time left.
-- The next statement reads the view, and does so under the view's path: see path.sql.
select set_config('statement_timeout', greatest(1, least($1, 50000 - (extract(epoch from clock_timestamp() - now()) * 1000)::integer))::text, true),
       set_config('search_path', coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path')), true)
