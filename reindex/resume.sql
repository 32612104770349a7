-- Continues a reindex that was interrupted; `select * from catchword.reindex where finished_at is null` shows which.
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
