-- What a worker asks at each tick, in one question: an idle one costs the server next to nothing, however many
-- collections there are.

create table catchword.worker (
  id          uuid primary key,
  host        text not null,
  version     text not null,
  collections text[] not null,
  blocked     jsonb not null default '{}',
  breaker     text not null default 'closed',
  started_at  timestamptz not null default now(),
  seen_at     timestamptz not null default now(),
  passed_at   timestamptz,
  trouble     text,
  lane        text
);
comment on table  catchword.worker is 'one row per worker, renewed at each tick';
comment on column catchword.worker.id is 'drawn when the worker starts';
comment on column catchword.worker.host is 'where it runs';
comment on column catchword.worker.version is 'of the binary';
comment on column catchword.worker.collections is 'what it serves';
comment on column catchword.worker.blocked is 'collections it cannot work on, and why';
comment on column catchword.worker.breaker is 'closed, or why and since when requests to Elasticsearch are held back';
comment on column catchword.worker.started_at is 'when it started';
comment on column catchword.worker.seen_at is 'its last heartbeat';
comment on column catchword.worker.passed_at is 'when a pass of it last succeeded';
comment on column catchword.worker.trouble is 'what its last tick failed of; null: it did not';
comment on column catchword.worker.lane
  is 'why it cannot keep the quick lane; null: it keeps it, leaves it to another worker, or needs none';

-- Whether work moves, whatever the cause: judged by progress, by a clock that no postponement moves. A tick that sees
-- due jobs makes the row, or a batch of which everything failed; whoever settles, writes or buries deletes it. So a
-- row that grows old means that ticks saw work and nothing of it moved. To be refused is not to move: where everything
-- is refused, the view or the mapping is at fault.
create table catchword.standstill (
  collection text primary key,
  since      timestamptz not null default now(),
  why        text
);
comment on table  catchword.standstill
  is 'collections with due jobs of which none has moved since; no row: work moves, or there is none';
comment on column catchword.standstill.collection is 'whose jobs';
comment on column catchword.standstill.since is 'when a tick first saw due jobs after the last one moved';
comment on column catchword.standstill.why is 'what a worker knows of the reason';

-- How fresh search was: the changes that the loop saw in Elasticsearch, by the minute, and how many of them later than
-- the objective says. `catchword check` judges burn rates from it without Prometheus. And what else batches did: the
-- history adds it up (0012_history.sql). Counted by the statement that settles, so it costs no round trip, and each
-- session has a row of its own, so no batch waits for another's count.
create table catchword.freshness (
  minute      timestamptz not null,
  collection  text not null,
  session     integer not null,
  changes     bigint not null,
  slow        bigint not null constraint freshness_slow_are_some check (slow between 0 and changes),
  settled     bigint not null default 0,
  written     bigint not null default 0,
  pushed_back bigint not null default 0,
  buried      bigint not null default 0,
  buckets     bigint[] not null default '{}',
  constraint freshness_counts_something check (changes + settled + written + pushed_back + buried > 0),
  primary key (minute, collection, session)
);
comment on table  catchword.freshness
  is 'what batches did, and how fresh the changes were that they saw in Elasticsearch, by the minute; kept for two '
     'days';
comment on column catchword.freshness.minute is 'the minute in which the batch began';
comment on column catchword.freshness.collection is 'whose jobs';
comment on column catchword.freshness.session is 'the process id of the session that worked on them';
comment on column catchword.freshness.changes is 'live writes whose job was settled by a look; bulks do not count';
comment on column catchword.freshness.slow is 'those among them that were seen over 300 seconds after the write';
comment on column catchword.freshness.settled is 'jobs that were settled';
comment on column catchword.freshness.written is 'documents and tombstones that Elasticsearch applied';
comment on column catchword.freshness.pushed_back is 'jobs that were refused, to be tried again';
comment on column catchword.freshness.buried is 'jobs that were given up';
comment on column catchword.freshness.buckets
  is 'of the changes, how many were seen within 0.01 * 2^(n/2) seconds, from n = 0; zeros at the end are left out';

-- The canary: one row of catchword's own that workers change each minute and watch until search shows it. It is
-- attached like any table, so it goes the whole way, and there is a signal of freshness where nobody writes.
create table catchword.canary (
  id                 integer primary key default 1 constraint canary_is_one check (id = 1),
  beat               bigint not null default 0,
  changed_at         timestamptz not null default '-infinity',
  catchword_revision bigint
);
comment on table  catchword.canary is 'one row that workers change each minute, to see it through to search';
comment on column catchword.canary.id is 'holds the table to one row';
comment on column catchword.canary.beat is 'how often it was changed';
comment on column catchword.canary.changed_at is 'when it was last changed';
comment on column catchword.canary.catchword_revision is 'catchword: revision';
insert into catchword.canary default values;

create view catchword.canary_document as
select id as key, catchword_revision as revision, json_build_object('beat', beat) as body from catchword.canary;
comment on view catchword.canary_document is 'the canary''s document';
comment on column catchword.canary_document.key is 'always 1';
comment on column catchword.canary_document.revision is 'of the row';
comment on column catchword.canary_document.body is 'the beat';

-- However many workers there are, one of them changes it each minute: the others wait for its lock and find it changed.
create function catchword.stir_canary() returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  stirred bigint;
begin
  perform set_config('catchword.tag', 'canary', true), set_config('catchword.delay', '0', true);
  update catchword.canary set beat = beat + 1, changed_at = now()
   where changed_at < now() - interval '55 seconds'
  returning catchword_revision into stirred;
  return stirred;
end $$;
comment on function catchword.stir_canary
  is 'changes the canary and returns its revision; null: somebody did within the minute';

-- Who cannot claim a job is a service: what it may not see, it leaves to the worker.
create function catchword.reader() returns oid
language sql stable set search_path = pg_catalog, pg_temp as $$
  select r.oid from pg_roles r where r.rolname = current_user and has_table_privilege('catchword.job', 'update')
$$;
comment on function catchword.reader is 'the role that reads all rows, if it is a worker''s; null: it is a service''s';

create function catchword.hidden_rows(p_collection text, p_reader oid) returns table (problem text, member text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp as $$
  select hidden.problem, c.name
    from catchword.members(p_collection) c
    join pg_proc p on p.oid = to_regprocedure(format('catchword.%I()', c.name || '_deleted'))
   cross join lateral catchword.security_problems(c.source, c.touches, c.view, p.proowner, p_reader) as hidden
$$;
comment on function catchword.hidden_rows is 'policies that would hide rows of a collection from who reads them';

create function catchword.problems(
  p_collection text, p_table text, p_key name[], p_view text,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns table (problem text)
language sql stable set search_path = pg_catalog, pg_temp as $$
  -- those of one schema of many hold up nobody else
  select b.problem from catchword.broken_triggers(p_collection) as b
   where not exists (select from catchword.collection c where c.name = p_collection and c.schemas is not null)
  union all
  select h.problem from catchword.hidden_rows(p_collection, catchword.reader()) as h
   where not exists (select from catchword.collection c where c.name = p_collection and c.schemas is not null)
  union all
  -- a name that this session cannot resolve proves nothing: it may have another search_path than the migrator
  select format('the configuration says %s, and the collection was attached with %s', said, attached)
    from catchword.collection c,
         lateral (select case when c.schemas is null then c.key_columns else c.key_columns[2:] end) as k (columns),
         lateral (values (format('table = %s', p_table), coalesce(c.source::text, c.definition),
                          case when c.schemas is null and catchword.schemas_of(p_table) is null
                               then catchword.named(p_table, p_path) <> c.source
                               else p_table is distinct from c.definition end),
                         (format('key = %s', array_to_string(p_key, ', ')), array_to_string(k.columns, ', '),
                          p_key <> k.columns),
                         (format('view = %s', p_view), c.view,
                          case when c.schemas is null then catchword.named(p_view, p_path) <> to_regclass(c.view)
                               else p_view <> c.view end)
                 ) as named (said, attached, differs)
   where c.name = p_collection and differs
  union all
  select format('no schema has a table %s any more', c.definition)
    from catchword.collection c
   where c.name = p_collection and c.schemas is not null and not exists (select from catchword.members(c.name))
$$;
comment on function catchword.problems
  is 'what is wrong with what the promises rest on, and whether the configuration still names it; no row: nothing';

-- Nothing is held up by it: what is attached goes on as it was. Both sides of `touches` are compared with their tables
-- looked up, and a name that this session cannot resolve proves nothing.
create function catchword.unmigrated(p_collection text, p_table text, p_said jsonb, p_path text) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  with attached as (
    select array(select w from unnest(c.watch) as w order by w) as watch,
           -- of many schemas they are compared as they were said
           array(select case when c.schemas is null
                             then t - 'table' - 'foreign_key' - 'made'
                                  || jsonb_build_object('oid', to_regclass(t ->> 'table')::oid::text)
                             else t end
                   from jsonb_array_elements(c.touches) as t order by 1) as touches,
           -- a partition that came later has no trigger for a truncate
           exists (select from catchword.members(c.name) as m, jsonb_array_elements(m.touches) as t,
                               catchword.tree(case when t -> 'made' ? 'partitions'
                                                   then to_regclass(t ->> 'table') end) as p
                    where t -> 'made' ? 'partitions'
                      and not t -> 'made' -> 'partitions' ? catchword.full_name(p.relation)) as partitions,
           array(select case when c.schemas is null then to_regclass(u)::text else u end
                   from unnest(c.unwatched) as u order by 1) as unwatched,
           array(select m.schema from catchword.members(c.name) as m where c.schemas is not null) as schemas,
           -- it was renamed: no write fails, and no job has a lane
           c.fair_by is not null
           and exists (select from catchword.members(c.name) as m
                        where not catchword.has_column(m.source, c.fair_by)
                          and (c.fair_by <> 'schema' or c.schemas is null)) as tenants_unknown,
           c.delay_seconds, c.fair_by, c.scopes, c.period, c.revision_column
      from catchword.collection c where c.name = p_collection
  ),
  said as (
    select array(select w from jsonb_array_elements_text(p_said -> 'watch') as w order by w) as watch,
           array(select case when many.are then t
                             else t - 'table'
                                  || jsonb_build_object('oid', catchword.named(t ->> 'table', p_path)::oid::text) end
                   from jsonb_array_elements(p_said -> 'touches') as t order by 1) as touches,
           (select many.are or coalesce(bool_and(catchword.named(t ->> 'table', p_path) is not null), true)
              from jsonb_array_elements(p_said -> 'touches') as t) as touches_known,
           array(select case when many.are then u else catchword.named(u, p_path)::text end
                   from jsonb_array_elements_text(p_said -> 'unwatched') as u order by 1) as unwatched,
           array(select catchword.matching(p_table) where many.are) as schemas,
           (p_said ->> 'delay')::integer as delay_seconds, p_said ->> 'fair_by' as fair_by,
           p_said -> 'scopes' as scopes, p_said ->> 'period' as period,
           p_said ->> 'revision' as revision_column
      from (select catchword.schemas_of(p_table) is not null) as many (are)
  )
  select array(
    select named.what
      from attached a, said s,
           lateral (values
             ('touches', s.touches_known and a.touches is distinct from s.touches),
             ('partitions', a.partitions),
             ('schemas', a.schemas is distinct from s.schemas),
             ('watch', a.watch is distinct from s.watch),
             ('delay', a.delay_seconds <> s.delay_seconds),
             ('fair_by', a.fair_by is distinct from s.fair_by or a.tenants_unknown),
             ('scopes', a.scopes is distinct from s.scopes),
             ('period', a.period is distinct from s.period),
             ('revision', a.revision_column <> s.revision_column),
             ('unwatched', array_position(s.unwatched, null) is null and a.unwatched is distinct from s.unwatched)
           ) as named (what, differs)
     where named.differs)
$$;
comment on function catchword.unmigrated
  is 'settings that the configuration has otherwise than the collection was attached with';

-- A table below the view whose changes nobody is told of.
create function catchword.unwatched_tables(p_collection catchword.collection, p_reads oid[]) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  with told (relation) as (
    select p_collection.source
    union all
    select to_regclass(t.value ->> 'table') from jsonb_array_elements(p_collection.touches) as t (value)
    union all
    select to_regclass(u.name) from unnest(p_collection.unwatched) as u (name)
  )
  select array(
    select catchword.full_name(r.read) as name
      from unnest(p_reads) as r (read) join pg_class k on k.oid = r.read
     where r.read <> all (select relation from told where relation is not null)
     order by name)
$$;
comment on function catchword.unwatched_tables
  is 'which of the tables that a view reads are neither watched nor waived';

-- A column that documents show and whose changes are passed over; one that is generated changes with those it is made
-- of.
create function catchword.unwatched_columns(p_collection catchword.collection, p_columns text[]) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  with shown as (
    select a.attrelid, a.attname as name from pg_attribute a
     where format('%s.%s', a.attrelid, a.attnum) = any(p_columns) and a.attgenerated = ''
       and a.attrelid = any(array(select split_part(c, '.', 1)::oid from unnest(p_columns) as c))
  ),
  -- related tables of which each touch has a list of its own
  related as (
    select t.value ->> 'table' as name, array_agg(w.watched) as watched
      from jsonb_array_elements(p_collection.touches) as t (value)
      left join lateral (select jsonb_array_elements_text(t.value -> 'watch')
                         union all
                         select jsonb_array_elements_text(t.value -> 'made' -> 'columns')
                         union all
                         select unnest(catchword.primary_key(to_regclass(t.value ->> 'table')))) as w (watched) on true
     -- the view reads a table's own columns for its own documents, too: which of them it reads of others, nobody knows
     where to_regclass(t.value ->> 'table') <> p_collection.source
     group by 1 having bool_and(jsonb_array_length(coalesce(t.value -> 'watch', '[]')) > 0)
  )
  select array(select s.name::text from shown s
                where s.attrelid = p_collection.source and cardinality(p_collection.watch) > 0
                  and s.name <> all (p_collection.watch
                                     || p_collection.key_columns::text[] || p_collection.revision_column::text)
                order by s.name)
         || array(select format('%s.%I', r.name, s.name) from related r join shown s on s.attrelid = to_regclass(r.name)
                   where s.name <> all (r.watched)
                   order by 1)
$$;
comment on function catchword.unwatched_columns
  is 'columns that a view reads and whose changes are passed over, because watch lacks them';

-- Names are quoted by Postgres itself. A table that is gone yields null, which is an error and never "no rows".
create function catchword.attached_members(
  p_collection text, p_role oid, p_reader oid,
  out members jsonb, out without_view text, out view_changed boolean, out unwatched jsonb,
  out unwatched_columns jsonb, out repartitioned boolean
)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(jsonb_agg(jsonb_build_object(
           'schema', m.schema,
           'table', catchword.full_name(m.source),
           'view', m.view,
           'problem', case when m.schema is null then null
                           when to_regclass(m.view) is null then format('the view %s is gone', m.view)
                           when not (has_schema_privilege(p_role, to_regnamespace(quote_ident(m.schema)), 'usage')
                                     and has_table_privilege(p_role, m.source, 'select')
                                     and has_table_privilege(p_role, to_regclass(m.view), 'select'))
                           then format('the role %s may not read %s and %s; run migrations/grants.sql again',
                                       pg_get_userbyid(p_role), m.source, m.view)
                           else wrong.problem end,
           -- a uuid alone is bound as it is: Postgres takes longer to read its text than to find its row
           'names', catchword.names_of(m, case when m.schema is null and m.key_types = array['uuid'] then 'uuid[]'
                                               else 'text[]' end)
             -- a column without a zone is read as UTC, whatever the session's zone
             || jsonb_build_object('period', (
                  select format(case when a.atttypid = 'timestamptz'::regtype then 't.%I'
                                     else '(t.%I::timestamp at time zone ''utc'')' end, a.attname)
                    from pg_attribute a
                   where a.attrelid = m.source and a.attname = m.period and a.attnum > 0 and not a.attisdropped)))
           order by m.schema collate "C"), '[]'),
         min(m.view) filter (where m.schema is null and to_regclass(m.view) is null),
         coalesce(bool_or(not catchword.same_view(m.filled_view, facts.digest)), false),
         coalesce(jsonb_agg(catchword.unwatched_tables(m, facts.reads)), '[]'),
         coalesce(jsonb_agg(catchword.unwatched_columns(m, facts.columns)), '[]'),
         coalesce(bool_or(m.partitions is distinct from catchword.partitions_of(m.name, m.source)), false)
    from catchword.members(p_collection) as m
   cross join lateral catchword.view_facts(m.view) as facts
    -- asked once for all of them: a function is planned at each call. A collection of one schema asks for itself.
    left join (select b.member, min(b.problem) as problem
                 from catchword.collection w
                cross join lateral (
                  select b.member, b.problem from catchword.broken_triggers(w.name) as b
                  union all
                  select s.member, s.problem from catchword.hidden_rows(w.name, p_reader) as s) as b
                where w.name = p_collection and w.schemas is not null
                group by b.member) as wrong on wrong.member = m.name and m.schema is not null
$$;
comment on function catchword.attached_members
  is 'the members of a collection as they are attached now, and what is to be said of all of them';

create function catchword.each_once(p_lists jsonb) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select array(select named.name
                 from jsonb_array_elements(p_lists) with ordinality as lists (list, n),
                      jsonb_array_elements_text(lists.list) with ordinality as named (name, i)
                group by named.name order by min(lists.n), min(named.i))
$$;
comment on function catchword.each_once is 'the names of several lists, each once, in their order';

create function catchword.attached(
  p_names text[], p_tables text[], p_views text[], p_said jsonb[],
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns table (
  name text, key_types text[], targets text[], period text, members jsonb, view_name text,
  has_ids boolean, view_exists boolean, paused text, problems text[], unmigrated text[],
  view_changed boolean, rebuilding boolean, installation uuid, unwatched text[], unwatched_columns text[], copy_of text,
  was_broken boolean, search_alias text, repartitioned boolean, fair boolean
)
-- its plans depend on no value, and to make them takes longer than to run them: one each is enough for a session
language sql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
  select c.name, case when c.schema is null then c.key_types else 'text'::text || c.key_types end, c.targets,
         c.period::text,
         its.members,
         coalesce(its.without_view, c.view),
         c.has_ids,
         its.without_view is null,
         (select format('since %s by %s: %s',
                        to_char(p.since at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'), p.by, p.reason)
            from catchword.pause p where p.collection = c.name),
         array(select f.problem
                 from catchword.problems(c.name, said.source, array(
                        select k.name::name from jsonb_array_elements_text(said.settings -> 'key') as k (name)),
                        said.view, p_path) f),
         catchword.unmigrated(c.name, said.source, said.settings, p_path),
         its.view_changed,
         -- a copy leaves the original's indices alone
         original.name is null
           and exists (select from catchword.rebuild b where b.collection = c.name and b.finished_at is null),
         (select i.id from catchword.installation i),
         catchword.each_once(its.unwatched),
         catchword.each_once(its.unwatched_columns),
         original.name,
         c.broken_at is not null,
         c.search_alias,
         its.repartitioned
           or (select count(*) from catchword.collection m where m.member_of = c.name)
              <> jsonb_array_length(its.members) and c.schemas is not null,
         c.fair_by is not null
    from catchword.collection c
    join unnest(p_names, p_tables, p_views, p_said) as said (name, source, view, settings)
      on said.name = c.name
    cross join lateral catchword.attached_members(
      c.name, (select r.oid from pg_roles r where r.rolname = current_user), catchword.reader()) as its
    cross join (select catchword.copy_of() offset 0) as original (name)
$$;
comment on function catchword.attached
  is 'these collections as they are attached now, for a configuration that says so of them';

-- What its triggers rest on was broken, or is whole again. Nobody knows what was written meanwhile: an audit finds it.
create function catchword.note_broken(p_collection text, p_broken boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_broken then
    update catchword.collection set broken_at = now() where name = p_collection and broken_at is null;
  else
    update catchword.collection set broken_at = null where name = p_collection and broken_at is not null;
    if found then
      perform catchword.ask_audit(p_collection, false, 'was broken');
    end if;
  end if;
end $$;
comment on function catchword.note_broken
  is 'remembers that a collection is broken; when it is not any more, asks for an audit';

-- Partitions come and go, and no trigger fires. One that is new gets what Postgres does not make there. If it had rows
-- before it came, nobody was told of them, and documents of their numbers may show something else; if one is gone, its
-- rows are. An audit finds both. It runs with the rights of who owns the triggers, and hardly waits: a writer must not
-- queue behind it.
create function catchword.note_partitions_of(col catchword.collection) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '300ms' as $$
declare
  now_there text[];
  added text[];
  gone text[];
  part text;
  filled boolean := false;
begin
  now_there := catchword.partitions_of(col.name, col.source);
  added := array(select unnest(now_there) except select unnest(col.partitions));
  gone := array(select unnest(col.partitions) except select unnest(now_there));
  if added = '{}' and gone = '{}' then
    return null;
  end if;
  begin
    perform catchword.complete_partitions(col);
  exception
    when lock_not_available then
      return null;
    when insufficient_privilege then
      -- what it lacks is a problem from now on, and is told as one
      null;
  end;
  foreach part in array added loop
    filled := filled or catchword.had_rows(col, split_part(part, ':', 1)::oid, split_part(part, ':', 2)::oid);
  end loop;
  if filled or gone <> '{}' then
    perform catchword.ask_audit(catchword.whole_name(col), filled, 'partitions');
  end if;
  update catchword.collection set partitions = now_there where name = col.name;
  return format('%s came and %s went%s', cardinality(added), cardinality(gone),
                case when filled or gone <> '{}' then '; an audit looks for rows that nobody was told of' else '' end);
end $$;
comment on function catchword.note_partitions_of is 'the same of one table; null: nothing to do';

create function catchword.note_partitions(p_collection text) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '300ms' as $$
declare
  m catchword.collection;
  gone text[];
  said text[];
begin
  -- somebody else is at it, or attaches: the next tick looks again
  perform from catchword.turn where what = 'attach' for update skip locked;
  if not found then
    return null;
  end if;
  begin
    gone := catchword.forget_members(p_collection);
  exception when lock_not_available then
    return null;
  end;
  if gone <> '{}' then
    said := said || format('the schema %s is gone; an audit looks for its documents', array_to_string(gone, ', '));
  end if;
  for m in select * from catchword.members(p_collection) loop
    said := said || catchword.note_partitions_of(m);
  end loop;
  return nullif(array_to_string(said, '; '), '');
end $$;
comment on function catchword.note_partitions
  is 'gives new partitions their triggers, and asks for an audit where rows came or went with one; null: nothing to do';

-- Rows of before are older than the trigger there, or have no number. The first of them answers; a partition that has
-- grown large since it came is taken for one that had rows. One whose file is not its first was emptied perhaps, before
-- anybody could see it.
create function catchword.had_rows(p_collection catchword.collection, p_partition oid, p_trigger oid) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  had boolean;
begin
  if pg_relation_size(p_partition) > 100000000 or pg_relation_filenode(p_partition) <> p_partition then
    return true;
  end if;
  execute format('select exists (select from only %s t, pg_trigger g
                                  where g.oid = $1 and (t.%I is null or age(t.xmin) >= age(g.xmin)))',
                 catchword.full_name(p_partition), p_collection.revision_column)
     into had using p_trigger;
  return had;
end $$;
comment on function catchword.had_rows is 'had a partition rows that nobody was told of?';

-- In the order of their names, and never waiting: two workers that say it at once must not lock each other out.
create function catchword.note_moved(p_collections text[]) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  delete from catchword.standstill
   where collection in (
     select s.collection from catchword.standstill s
      where s.collection = any(p_collections) order by s.collection for update skip locked);
$$;
comment on function catchword.note_moved is 'jobs of these collections were settled, written or buried';

-- A worker that vanished is forgotten after a day: until then its absence is worth seeing.
create function catchword.renew_worker(
  p_id uuid, p_host text, p_version text, p_collections text[], p_blocked jsonb, p_breaker text, p_passed boolean,
  p_trouble text, p_lane text, p_moved text[], p_stood jsonb
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  -- before the heartbeat: it tells by the last one whether anybody was there
  perform catchword.note_history();
  delete from catchword.worker where seen_at < now() - interval '1 day' and id <> p_id;
  insert into catchword.worker (id, host, version, collections, blocked, breaker, passed_at, trouble,
                                lane)
  values (p_id, p_host, p_version, p_collections, p_blocked, p_breaker, case when p_passed then now() end, p_trouble,
          p_lane)
  on conflict (id) do update
     set collections = excluded.collections, blocked = excluded.blocked, breaker = excluded.breaker,
         seen_at = now(), trouble = excluded.trouble, lane = excluded.lane,
         passed_at = coalesce(excluded.passed_at, worker.passed_at);
  perform catchword.note_moved(p_moved) where p_moved <> '{}';
  insert into catchword.standstill (collection, why)
  select stood.key, nullif(stood.value, '') from jsonb_each_text(p_stood) as stood order by stood.key
  on conflict (collection) do update set why = excluded.why where standstill.why is distinct from excluded.why;
end $$;
comment on function catchword.renew_worker
  is 'a worker''s heartbeat; p_stood: collections of which jobs were claimed and none moved, and why';

-- Postgres' clock was ahead for a moment: what was scheduled then would be due in a day, and would stand behind
-- everybody until then. No job is made in the future, and the longest wait is a push-back of 75 minutes, but for those
-- that `schedule` makes for later: they expire later too. Found at the end of each priority, so that it costs nothing
-- where there is none.
create function catchword.bring_back(p_collections text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  ids bigint[];
begin
  with recursive priorities (collection, priority) as (
    select c.name, (select min(j.priority) from catchword.job j where j.collection = c.name)
      from unnest(p_collections) as c (name)
    union all
    select p.collection,
           (select min(j.priority) from catchword.job j where j.collection = p.collection and j.priority > p.priority)
      from priorities p where p.priority is not null
  ),
  ahead as (
    select j.id
      from priorities p
     cross join lateral (select id from catchword.job
                          where job.collection = p.collection and job.priority = p.priority
                            and enqueued_at > now() + interval '5 minutes'
                          order by enqueued_at, id limit 1000 for update skip locked) as j
     where p.priority is not null
    union
    select j.id
      from unnest(p_collections) as c (name)
     cross join lateral (select id from (select id, scheduled_at, expires_at from catchword.job
                                          where job.collection = c.name
                                          order by priority, enqueued_at, id limit 1000) as first
                          where scheduled_at > now() + interval '2 hours'
                            and scheduled_at > expires_at - interval '30 days') as j
  )
  select coalesce(array_agg(id), '{}') into ids from ahead;
  if cardinality(ids) > 0 then
    update catchword.job set enqueued_at = least(enqueued_at, now()), scheduled_at = now() where id = any(ids);
    insert into catchword.journal (who, what, detail, count)
    values ('catchword', 'bring back', 'jobs were dated in the future: Postgres'' clock was ahead', cardinality(ids));
  end if;
  return cardinality(ids);
end $$;
comment on function catchword.bring_back
  is 'makes jobs due that were scheduled while Postgres'' clock was ahead; returns how many';

-- Elasticsearch answers again. What was put off meanwhile would be due in half a minute, and be the next tick's; it
-- stands at the front of the queue. A job that waits for its direct write and is looked at early is done no harm.
create function catchword.hasten(p_collections text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_sort = off as $$
declare
  put_off bigint[];
  hastened bigint;
begin
  put_off := array(
    select j.id
      from unnest(p_collections) as c (name)
     cross join lateral (select id, attempts, scheduled_at from catchword.job where job.collection = c.name
                          order by priority, enqueued_at, id limit 20000) as j
     where j.attempts = 0 and j.scheduled_at > now() and j.scheduled_at <= now() + interval '30 seconds');
  update catchword.job set scheduled_at = now() where id = any(array(
    select id from catchword.job where id = any(put_off) for update skip locked));
  get diagnostics hastened = row_count;
  return hastened;
end $$;
comment on function catchword.hasten
  is 'makes jobs due that were put off because Elasticsearch was down; returns how many';

-- The beginning of a tick: which server this is, what is due, a heartbeat. If nothing is due, the tick ends here.
-- The settings are those of a claim, and for its reasons (src/job/keep_the_plan.sql): it walks the queue as a claim
-- does.
create function catchword.tick(
  p_id uuid, p_host text, p_version text, p_collections text[], p_blocked jsonb, p_breaker text, p_passed boolean,
  p_trouble text, p_lane text, p_moved text[], p_stood jsonb,
  out standby boolean, out switched boolean, out due text[], out quiet text[], out standing_still jsonb,
  out brought_back bigint
)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_sort = off as $$
declare
  seen_due text[];
  seen_soon text[];
  seen_refused text[];
begin
  standby := pg_is_in_recovery();
  if standby then
    return;
  end if;
  switched := catchword.note_server();
  brought_back := catchword.bring_back(p_collections);
  -- bounded: whether a long queue has something due, its walk finds out. What was postponed is due again within 30 s
  select coalesce(array_agg(c.name) filter (where first.due or first.jobs >= 1000), '{}'),
         coalesce(array_agg(c.name) filter (where first.due), '{}'),
         coalesce(array_agg(c.name) filter (where first.soon), '{}'),
         coalesce(array_agg(c.name) filter (where first.refused), '{}')
    into due, seen_due, seen_soon, seen_refused
    from unnest(p_collections) as c (name)
   cross join lateral (
      select count(*) as jobs, coalesce(bool_or(j.scheduled_at <= now()), false) as due,
             coalesce(bool_or(j.scheduled_at <= now() + interval '30 seconds' and j.attempts = 0), false) as soon,
             coalesce(bool_or(j.attempts > 0), false) as refused
        from (select scheduled_at, attempts from catchword.job where collection = c.name
               order by priority, enqueued_at, id limit 1000) as j) as first;
  -- what a worker said of them is over: nothing is due soon, and no change of a related table waits
  quiet := array(select c.name from unnest(p_collections) as c (name)
                  where c.name <> all(seen_due || seen_soon)
                    and not exists (select from catchword.job j where j.name = 'touch' and j.collection = c.name));
  -- it begins again where nothing is due or was refused, for a pause, and with the first worker after a time without
  -- one
  delete from catchword.standstill s
   where s.collection = any(p_collections)
     and (s.collection <> all(seen_due || seen_soon || seen_refused)
          or exists (select from catchword.pause p where p.collection = s.collection)
          or not exists (select from catchword.worker w
                          where s.collection = any(w.collections) and w.seen_at > now() - interval '150 seconds'));
  perform catchword.renew_worker(p_id, p_host, p_version, p_collections, p_blocked, p_breaker, p_passed or due = '{}',
                                 p_trouble, p_lane, p_moved, p_stood);
  insert into catchword.standstill (collection)
  select seen.name from unnest(seen_due) as seen (name)
   where not exists (select from catchword.pause p where p.collection = seen.name)
     and not exists (select from catchword.standstill s where s.collection = seen.name)
   order by seen.name
  on conflict do nothing;
  standing_still := (
    select jsonb_object_agg(s.collection,
                            jsonb_build_object('seconds', extract(epoch from now() - s.since), 'why', s.why))
      from catchword.standstill s where s.collection = any(p_collections));
end $$;
comment on function catchword.tick
  is 'begins a worker''s tick: notes the server, says which collections may have due jobs and of which none moves, '
     'sends a heartbeat';

revoke execute on all functions in schema catchword from public;
