-- Reindexes what one user wrote:
--
--   psql "$DATABASE_URL" -v user=acct:mina@example.org -f reindex/user.sql
--
-- Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true.

\set ON_ERROR_STOP on
\set SHOW_CONTEXT never
\if :{?user}
\else
do $$ begin raise exception 'which user? say: psql "$DATABASE_URL" -v user=acct:mina@example.org -f reindex/user.sql'; end $$;
\endif
\set scope user
\set value :user
\ir scope.sql
