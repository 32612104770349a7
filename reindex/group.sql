-- Reindexes what belongs to one group:
--
--   psql "$DATABASE_URL" -v group=biology -f reindex/group.sql
--
-- Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true.

\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\if :{?group}
\else
do $$ begin raise exception 'which group? say: psql "$DATABASE_URL" -v group=biology -f reindex/group.sql'; end $$;
\endif
\set scope group
\set value :group
\ir scope.sql
