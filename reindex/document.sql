-- Reindexes what is on one document:
--
--   psql "$DATABASE_URL" -v document=17 -f reindex/document.sql
--
-- Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true.

\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\if :{?document}
\else
do $$ begin raise exception 'which document? say: psql "$DATABASE_URL" -v document=17 -f reindex/document.sql'; end $$;
\endif
\set scope document
\set value :document
\ir scope.sql
