-- First of all the path, with every name written out: until it is set, a function that somebody planted
-- in a schema of the path could run as this role. What the path was is kept: names in the configuration are looked up by it, and views are
-- read under it, with Postgres' own names first and temporary ones last.
select pg_catalog.set_config('catchword.path', pg_catalog.current_setting('search_path'), false),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)
