-- Who holds the lock of alone_take.sql. A role that may not keep what an audit found is none of ours, whatever it calls itself.
select a.pid, coalesce(a.usename::text, 'unknown') as role, coalesce(nullif(a.application_name, ''), 'no name') as application,
       coalesce(has_table_privilege(a.usesysid, to_regclass('catchword.audit')::oid, 'update'), false) as is_ours
  from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
   and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
   and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended($1, 0)
 limit 1
