-- Who keeps others from a table or view of this database, the longest first. Of other roles' sessions not everybody may see more than the name.
select l.relation::regclass::text as relation, a.pid, a.usename::text as role, a.state,
       extract(epoch from now() - a.xact_start)::float8 as seconds
  from pg_locks l
  join pg_stat_activity a on a.pid = l.pid
  join pg_class r on r.oid = l.relation and r.relkind in ('r', 'p', 'v', 'm') and r.relnamespace <> 'catchword'::regnamespace
 where l.locktype = 'relation' and l.granted and l.mode in ('ExclusiveLock', 'AccessExclusiveLock') and l.pid <> pg_backend_pid()
   and l.database = (select d.oid from pg_database d where d.datname = current_database())
 order by seconds desc nulls last, a.pid, relation
 limit 3
