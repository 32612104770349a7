-- The audit: compares everything, both ways. What it found is kept, and how far it came, so that one that was cut short goes on.

create table catchword.audit (
  id            bigint generated always as identity primary key,
  collection    text not null references catchword.collection (name) on delete cascade,
  targets       text[] not null,
  whole         boolean not null,
  repair        boolean not null,
  content       boolean not null,
  since         timestamptz,
  sample        double precision constraint audit_sample_is_a_share check (sample > 0 and sample <= 1),
  reason        text not null,
  asked_at      timestamptz not null default now(),
  asked_by      text not null default session_user,
  stage         text not null default 'rows' constraint audit_stage_is_known check (stage in ('rows', 'records', 'documents')),
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
  finished_at   timestamptz
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
comment on column catchword.audit.reason is 'why: operator, schedule, rebuild, …';
comment on column catchword.audit.asked_at is 'when it was asked for; what it verifies is what was committed before';
comment on column catchword.audit.asked_by is 'by whom';
comment on column catchword.audit.stage is 'rows: keys of the table; records: keys of deletes; documents: what each index shows to readers';
comment on column catchword.audit.target is 'documents: which of the indices, from 0';
comment on column catchword.audit.cursor is 'the last key, or the place in the point in time';
comment on column catchword.audit.point_in_time is 'documents: the point in time that is walked';
comment on column catchword.audit.looked is 'how many keys were looked at';
comment on column catchword.audit.counts is 'what the finished stages found, by kind';
comment on column catchword.audit.stage_counts is 'what the present stage found so far';
comment on column catchword.audit.examples is 'some of the keys that differ';
comment on column catchword.audit.scheduled is 'how many keys were scheduled for repair';
comment on column catchword.audit.base is 'enqueued_at of its first job, so that bulks interleave';
comment on column catchword.audit.seen_at is 'its last sign of life';
comment on column catchword.audit.finished_at is 'when it came to its end';
create index audit_of_collection on catchword.audit (collection, id);

-- Keys as they are, not cast to the key's type: an id that cannot be a key has a document all the same, and the loop sees it gone.
create function catchword.schedule_audit(p_collection text, p_keys text[], p_base timestamptz, p_before bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into catchword.job (collection, key, enqueued_at, priority, tag)
  select p_collection, k, p_base + (p_before + n) * interval '1 microsecond', 100, 'audit'
    from unnest(p_keys) with ordinality as found (k, n) order by n;
$$;
comment on function catchword.schedule_audit is 'schedules what an audit found, spaced like a reindex of a part';

revoke execute on all functions in schema catchword from public;
