-- All that a round has to know, in one question.
--
-- Sentinels: what each of these indices last acknowledged, and the next number. Read before the index is looked at: what was acknowledged
-- by now must be there. One that another worker has just renewed is left out. One of an index that is no longer written to is forgotten:
-- another index may get its name.
--
-- Audits: those that were asked for and are not finished, the oldest first; an operator's own is left to the operator, a rebuild's to the
-- rebuild. If there is none, one is asked for: of the collection that was not compared for the longest time, if that is longer than $6
-- seconds. Only an audit that came to its end has compared anything: one that fails every night must not put this one off.
with targets as (
  select t.collection, t.target from unnest($1::text[], $2::text[]) as t (collection, target)
),
forgotten as (
  delete from catchword.sentinel s
   where s.collection in (select t.collection from targets t) and not exists (select from targets t where (t.collection, t.target) = (s.collection, s.target))
),
sentinels as (
  select t.collection, t.target, s.index_uuid as uuid, s.revision, s.documents, nextval('catchword.revision') + 1 as next
    from targets t
    left join catchword.sentinel s on (s.collection, s.target) = (t.collection, t.target)
   where s.renewed_at is null or s.renewed_at < now() - interval '45 seconds'
),
tried as (
  -- written down before it is sent: a sentinel that the index has and nobody sent tells that this database went back
  update catchword.sentinel s set tried = (n.next || s.tried)[1:60] from sentinels n where (s.collection, s.target) = (n.collection, n.target)
),
asked as materialized (
  select a.id, a.reason
    from catchword.audit a
    join catchword.collection c on c.name = a.collection and a.targets <@ c.targets
   where a.finished_at is null and a.stopped_at is null and a.reason in ('schedule', 'asked', 'lost writes', 'another server', 'other content', 'was broken', 'partitions', 'schemas') and a.collection = any($5)
   order by a.id
   limit 20
),
overdue as (
  select c.name
    from catchword.collection c
    cross join lateral (select coalesce(max(a.asked_at), c.attached_at) as at from catchword.audit a
                         where a.collection = c.name and a.whole and a.finished_at is not null) as last
   where c.name = any($5) and c.targets <> '{}' and last.at < now() - make_interval(secs => $6) and not exists (select from asked)
   order by last.at, c.name
   limit 1
)
select coalesce((select jsonb_agg(to_jsonb(s)) from sentinels s), '[]') as sentinels,
       array(select n.name from unnest($3::text[]) as n (name)
              where exists (select from catchword.record d where d.collection = n.name and d.recorded_at < now() - make_interval(secs => $4))) as sweepable,
       coalesce((select jsonb_agg(to_jsonb(a) order by a.id) from asked a),
                (select jsonb_build_array(jsonb_build_object('id', catchword.ask_audit(o.name, false, 'schedule'), 'reason', 'schedule')) from overdue o),
                '[]') as audits
