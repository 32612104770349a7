-- Reindexes the rows that have one value in the column of a scope:
--
--   psql "$DATABASE_URL" -v scope=user -v value=acct:mina@example.org -f reindex/scope.sql
--
-- scope is a name under `scopes` in catchword.toml. Also: -v collection=NAME (default: annotation), -v rewrite=true, -v hidden=true.

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never
\if :{?scope}
\else
do $$ begin raise exception 'which scope? say: psql "$DATABASE_URL" -v scope=NAME -v value=VALUE -f reindex/scope.sql'; end $$;
\endif
\if :{?value}
\else
do $$ begin raise exception 'which value? say: psql "$DATABASE_URL" -v scope=NAME -v value=VALUE -f reindex/scope.sql'; end $$;
\endif
\ir options.sql

select catchword.reindex_start(:'collection', p_scope => :'scope', p_value => :'value', p_hidden => :'hidden', p_rewrite => :'rewrite') as id \gset
\ir run.sql
