-- Reindexes single keys, separated by commas. A key with a comma in it: select catchword.schedule('annotation', array['a,b']).
--
--   psql "$DATABASE_URL" -v ids=7,8,9 -f reindex/ids.sql
--
-- Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true (keys without a row too).

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never
\if :{?ids}
\else
do $$ begin raise exception 'which keys? say: psql "$DATABASE_URL" -v ids=KEY,KEY -f reindex/ids.sql'; end $$;
\endif
\ir options.sql

select catchword.reindex_start(:'collection', p_keys => string_to_array(:'ids', ','), p_hidden => :'hidden', p_rewrite => :'rewrite') as id \gset
\ir run.sql
