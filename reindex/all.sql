-- Reindexes everything of a collection, after all live writes and all smaller reindexes. It does not ask.
--
--   psql "$DATABASE_URL" -f reindex/all.sql
--
-- Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true.

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never
\ir options.sql

select catchword.reindex_start(:'collection', p_hidden => :'hidden', p_rewrite => :'rewrite') as id \gset
\ir run.sql
