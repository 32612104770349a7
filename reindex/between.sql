-- Reindexes the rows of a period, by the column that catchword.toml calls `period`. The end is excluded.
--
--   psql "$DATABASE_URL" -v from=2026-11-16 -v to='2026-11-17 12:30' -f reindex/between.sql
--
-- A time without a zone is UTC. Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true.

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never
\if :{?from}
\else
do $$ begin raise exception 'from when? say: psql "$DATABASE_URL" -v from=2026-11-16 -v to=2026-11-17 -f reindex/between.sql'; end $$;
\endif
\if :{?to}
\else
do $$ begin raise exception 'until when? say: psql "$DATABASE_URL" -v from=2026-11-16 -v to=2026-11-17 -f reindex/between.sql'; end $$;
\endif
\ir options.sql

set timezone = 'utc';
select catchword.reindex_start(:'collection', p_from => :'from', p_to => :'to', p_hidden => :'hidden', p_rewrite => :'rewrite') as id \gset
\ir run.sql
