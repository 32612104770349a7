-- Rebuilds that are not over, of these collections; or one by its number. `driven`: a process holds its lock (`lock.rs`).
select r.id, r.collection, r.stage, r.old_index, r.new_index, r.mapping, extract(epoch from r.keep)::float8 as keep_seconds, c.targets,
       r.held_index, r.held_refresh, r.started_at, r.started_by, extract(epoch from now() - r.stage_at)::float8 as stage_seconds, r.drop_at, coalesce(r.drop_at <= now(), false) as overdue,
       exists (select from pg_catalog.pg_locks l
                where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
                  and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
                  and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('catchword.rebuild ' || r.collection, 0)) as driven,
       x.id as reindex, coalesce(x.scheduled, 0) as scheduled, x.expected
  from catchword.rebuild r
  join catchword.collection c on c.name = r.collection
  left join lateral (select id, scheduled, expected from catchword.reindex
                      where reindex.collection = r.collection and tag = 'reindex.rebuild.' || r.id order by reindex.id desc limit 1) x on true
 where ($1::text[] is not null and r.collection = any($1) and r.finished_at is null) or r.id = $2
 order by r.collection, r.id
