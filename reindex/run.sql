-- Schedules reindex :id in chunks, each its own transaction, and prints how many. If it is interrupted, resume.sql continues it.
\set QUIET on
\pset tuples_only on
\pset format unaligned
call catchword.run_reindex(:'id');
select case when scheduled = 0 then format('nothing matches; nothing was scheduled for %s', collection)
            else format('scheduled %s %s for %s; a worker takes them from its next tick on; watch them: catchword status', scheduled, case scheduled when 1 then 'job' else 'jobs' end, collection) end
  from catchword.reindex where id = :'id';
