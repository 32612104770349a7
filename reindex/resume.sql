-- Schedules the next keys of a reindex now, up to 100,000 open jobs, without waiting for a worker; `select * from catchword.reindexes()` shows which there are.
--
--   psql "$DATABASE_URL" -v id=7 -f reindex/resume.sql

\set ON_ERROR_STOP on
\set QUIET on
\set SHOW_CONTEXT never
\if :{?id}
\else
do $$ begin raise exception 'which reindex? say: psql "$DATABASE_URL" -v id=NUMBER -f reindex/resume.sql'; end $$;
\endif
\ir run.sql
