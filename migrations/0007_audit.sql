-- The audit: compares everything, both ways. What it found is kept, and how far it came, so that one that was cut
-- short goes on.

create table catchword.audit (
  id            bigint generated always as identity primary key,
  collection    text not null references catchword.collection (name) on delete cascade,
  targets       text[] not null,
  whole         boolean not null,
  repair        boolean not null,
  content       boolean not null,
  since         timestamptz,
  sample        double precision constraint audit_sample_is_a_share check (sample > 0 and sample <= 1),
  content_share double precision
                constraint audit_content_share_is_a_share check (content_share > 0 and content_share <= 1),
  reason        text not null,
  asked_at      timestamptz not null default now(),
  asked_by      text not null default session_user,
  stage         text not null default 'rows'
                constraint audit_stage_is_known check (stage in ('rows', 'records', 'documents')),
  target        integer not null default 0,
  cursor        text,
  point_in_time text,
  looked        bigint not null default 0,
  counts        jsonb not null default '{}',
  stage_counts  jsonb not null default '{}',
  examples      jsonb not null default '[]',
  scheduled     bigint not null default 0,
  base          timestamptz not null default now(),
  seen_at       timestamptz not null default now(),
  finished_at   timestamptz,
  stopped_at    timestamptz
);
comment on table  catchword.audit is 'each audit: what it found, and how far it came';
comment on column catchword.audit.id is 'names it on the command line';
comment on column catchword.audit.collection is 'what is compared';
comment on column catchword.audit.targets is 'the indices that are compared with Postgres';
comment on column catchword.audit.whole is 'every key, every index, both ways';
comment on column catchword.audit.repair is 'what differs is scheduled';
comment on column catchword.audit.content is 'documents are compared too where the versions agree';
comment on column catchword.audit.since is 'only rows of the period since then';
comment on column catchword.audit.sample is 'the share of keys that is looked at';
comment on column catchword.audit.content_share
  is 'if documents are not all compared: the share of keys whose documents are, others each time';
comment on column catchword.audit.reason is 'why: operator, schedule, asked, rebuild, …';
comment on column catchword.audit.asked_at is 'when it was asked for; what it verifies is what was committed before';
comment on column catchword.audit.asked_by is 'by whom';
comment on column catchword.audit.stage
  is 'rows: keys of the table; records: keys of deletes; documents: what each index shows to readers';
comment on column catchword.audit.target is 'documents: which of the indices, from 0';
comment on column catchword.audit.cursor is 'the last key, or the place in the point in time';
comment on column catchword.audit.point_in_time is 'documents: the point in time that is walked';
comment on column catchword.audit.looked is 'how many keys were looked at';
comment on column catchword.audit.counts is 'what the finished stages found, by kind';
comment on column catchword.audit.stage_counts is 'what the present stage found so far';
comment on column catchword.audit.examples is 'some of the keys that differ';
comment on column catchword.audit.scheduled is 'how many keys were scheduled for repair';
comment on column catchword.audit.base is 'enqueued_at of its first job, so that bulks interleave';
comment on column catchword.audit.seen_at is 'its last heartbeat';
comment on column catchword.audit.finished_at is 'when it came to its end';
comment on column catchword.audit.stopped_at is 'when an operator stopped it: whoever runs it ends at its next page';
create index audit_of_collection on catchword.audit (collection, id);

-- Results of 90 days are kept, and the last whole one of each collection, however old. What was asked of an index that
-- is no longer there cannot be finished.
create function catchword.clear_audits() returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  with cleared as (
    delete from catchword.audit a
     where coalesce(a.finished_at, a.seen_at) < now() - interval '90 days'
           and a.id <> all (select max(b.id) from catchword.audit b
                             where b.whole and b.finished_at is not null group by b.collection)
        or a.finished_at is null
           and not exists (select from catchword.collection c where c.name = a.collection and a.targets <@ c.targets)
    returning a.collection, a.scheduled
  )
  update catchword.collection c set repaired = c.repaired + s.scheduled
    from (select collection, sum(scheduled)::bigint as scheduled from cleared group by collection) as s
   where c.name = s.collection and s.scheduled > 0;
$$;
comment on function catchword.clear_audits
  is 'deletes old results of audits, and keeps the sum of what they repaired';

-- Keys as they are, not cast to the key's type: an id that cannot be a key has a document all the same, and the loop
-- sees it gone.
create function catchword.schedule_audit(p_collection text, p_keys text[], p_base timestamptz, p_before bigint)
returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into catchword.job (collection, key, enqueued_at, priority, tag)
  select p_collection, k, p_base + (p_before + n) * interval '1 microsecond', catchword.priority_part(), 'audit'
    from unnest(p_keys) with ordinality as found (k, n) order by n;
$$;
comment on function catchword.schedule_audit is 'schedules what an audit found, spaced like a reindex of a part';

-- Whoever learns that something may have happened behind the queue's back asks for an audit; a worker runs it. One
-- that is asked for already and has not begun is as good.
create function catchword.ask_audit(p_collection text, p_content boolean, p_reason text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  asked bigint;
begin
  select a.id into asked
    from catchword.audit a
    join catchword.collection c on c.name = a.collection and a.targets @> c.targets and a.targets <@ c.targets
   where a.collection = p_collection and a.whole and a.repair and a.content >= p_content
     and a.finished_at is null and a.stopped_at is null and a.looked = 0 and a.reason not in ('operator', 'rebuild')
   order by a.id limit 1;
  if not found then
    -- the one of each day looks into some documents too: a hundredth, and 1,000 at least, which is most of them where
    -- there are few
    insert into catchword.audit (collection, targets, whole, repair, content, content_share, reason, base)
    select c.name, c.targets, true, true, p_content,
           case when p_reason = 'schedule' and not p_content
                then least(1, greatest(0.01, 1000 / greatest((select sum(catchword.about_rows(m.source))
                                                                from catchword.members(c.name) as m), 1))) end,
           p_reason, catchword.bulk_base(c.name, catchword.priority_part())
      from catchword.collection c where c.name = p_collection and c.targets <> '{}'
    returning id into asked;
  end if;
  return asked;
end $$;
comment on function catchword.ask_audit is 'asks for an audit with repair of a whole collection; a worker runs it';

-- One document of each shard is its sentinel: a tombstone whose version is remembered here after Elasticsearch
-- acknowledged it. All of an index are under one number. An index that has a lower one, or lacks one, has lost
-- acknowledged writes; one with another uuid is another index under the old name.
create table catchword.sentinel (
  collection text not null references catchword.collection (name) on delete cascade,
  target     text not null,
  index_uuid text not null,
  revision   bigint not null constraint sentinel_revision_is_odd check (revision % 2 = 1),
  documents  integer not null default 1 constraint sentinel_documents_are_some check (documents > 0),
  tried      bigint[] not null default '{}',
  renewed_at timestamptz not null default now(),
  lost_at    timestamptz,
  lost       text,
  primary key (collection, target)
);
comment on table  catchword.sentinel
  is 'what was last acknowledged by each index, so that one that went back is noticed';
comment on column catchword.sentinel.collection is 'whose index it is';
comment on column catchword.sentinel.target is 'the index';
comment on column catchword.sentinel.index_uuid
  is 'the uuid of the index, which changes when it is deleted, restored or made again';
comment on column catchword.sentinel.revision is 'the version that the index acknowledged';
comment on column catchword.sentinel.documents
  is 'how many documents were acknowledged under this version, so that each shard has one';
comment on column catchword.sentinel.tried
  is 'numbers that were sent and perhaps not acknowledged, the last ones first: one that the index has and that is '
     'not here is of a time that this database has lost';
comment on column catchword.sentinel.renewed_at is 'when';
comment on column catchword.sentinel.lost_at is 'when it was last noticed that the index went back';
comment on column catchword.sentinel.lost is 'what was noticed';

-- Records that are old enough to be swept, the oldest first, behind a cursor; none while there is work to do. What
-- becomes of one:
--   sweep   the delete of a key without a row: its tombstone goes first, then the record
--   forget  a higher record, the row's own number or the floor has passed it, or it is the touch of a row that is gone:
--           nothing needs it
--   keep    the row lies below it: without it the row's version would fall
create function catchword.old_records(
  p_collection text, p_seconds double precision, p_after timestamptz, p_after_key text, p_limit integer
) returns table (key text, revision bigint, recorded_at timestamptz, fate text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- bounded: a long queue is work to do, whether it is due or not
  if (select count(*) >= 10000 or coalesce(bool_or(scheduled_at <= now()), false)
        from (select scheduled_at from catchword.job where collection = p_collection limit 10000) as open) then
    return;
  end if;
  return query
    with old as materialized (
      select r.key, r.revision, r.recorded_at,
             exists (select from catchword.record higher
                      where higher.collection = r.collection and higher.key = r.key
                        and higher.revision > r.revision) as overtaken
        from catchword.record r
       where r.collection = p_collection and r.recorded_at < now() - make_interval(secs => p_seconds)
         and (r.recorded_at, r.key) > (p_after, p_after_key)
       order by r.recorded_at, r.key limit p_limit
    )
    select d.key, d.revision, d.recorded_at,
           case when d.overtaken then 'forget'
                when row_at.revision > d.revision then 'forget'
                when row_at.revision is not null then 'keep'
                when d.revision % 2 = 1 then 'sweep'
                else 'forget' end
      from old d
      left join catchword.rows_at(p_collection, array(select o.key from old o)) as row_at on row_at.key = d.key
     order by d.recorded_at, d.key;
end $$;
comment on function catchword.old_records
  is 'records that are old enough to be swept, and what becomes of each; none while there is work to do';

-- A record goes after its tombstone, and all that lie below it. One that came meanwhile, by another delete of its key,
-- is higher and stays; and so does one below which a row has come: an insert that was open for all that time. One that
-- somebody holds is for another time: the application must never wait for a sweep.
create function catchword.forget_records(p_collection text, p_keys text[], p_revisions bigint[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  forgotten bigint;
begin
  with there as materialized (
    select r.key, r.revision from catchword.rows_at(p_collection, p_keys) as r
  )
  delete from catchword.record d using (
    select o.key, o.revision
      from catchword.record o
      join unnest(p_keys, p_revisions) as swept (key, revision) on o.key = swept.key and o.revision <= swept.revision
     where o.collection = p_collection
       and (exists (select from catchword.record higher
                     where higher.collection = p_collection and higher.key = swept.key
                       and higher.revision > swept.revision)
            or not exists (select from there t where t.key = swept.key and t.revision < swept.revision))
       for update of o skip locked) as free
   where d.collection = p_collection and d.key = free.key and d.revision = free.revision;
  get diagnostics forgotten = row_count;
  -- with the last record of a key without a row its document is gone from every index
  delete from catchword.document_id d using unnest(p_keys) as swept (key)
   where d.collection = p_collection and d.key = swept.key
     and not exists (select from catchword.record r where r.collection = p_collection and r.key = swept.key)
     and swept.key not in (select t.key from catchword.rows_at(p_collection, p_keys) as t);
  return forgotten;
end $$;
comment on function catchword.forget_records is 'forgets numbers that nothing needs any more';

-- Those that are kept are looked at again when they are that old again: a sweep that met them each time would never
-- rest.
create function catchword.keep_records(p_collection text, p_keys text[], p_revisions bigint[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.record d set recorded_at = now()
    from (select o.key, o.revision
            from catchword.record o
            join unnest(p_keys, p_revisions) as kept (key, revision)
              on kept.key = o.key and kept.revision = o.revision
           where o.collection = p_collection for update of o skip locked) as free
   where d.collection = p_collection and d.key = free.key and d.revision = free.revision
$$;
comment on function catchword.keep_records is 'puts off the sweep of numbers that rows still need';

revoke execute on all functions in schema catchword from public;
