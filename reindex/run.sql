-- Schedules reindex :id in chunks, each its own transaction, until 100,000 jobs are open, and prints how many. Workers schedule the rest.
\set QUIET on
\pset tuples_only on
\pset format unaligned
call catchword.run_reindex(:'id');
select case when scheduled = 0 and finished_at is not null then format('nothing matches; nothing was scheduled for %s', collection)
            when finished_at is null then format('scheduled %s jobs for %s; workers schedule the rest; watch it: catchword reindex show %s', scheduled, collection, id)
            else format('scheduled %s %s for %s; a worker takes them within seconds; watch them: catchword status', scheduled, case scheduled when 1 then 'job' else 'jobs' end, collection) end
  from catchword.reindex where id = :'id';
