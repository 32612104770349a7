-- Rebuilding an index: a second one, filled through the queue and swapped in. Each stage is written down before it
-- begins, so that a rebuild that was cut short goes on where it was; what it does to Elasticsearch can be done twice.

create table catchword.rebuild (
  id           bigint generated always as identity primary key,
  collection   text not null references catchword.collection (name) on delete cascade,
  stage        text not null default 'create' constraint rebuild_stage_is_known
               check (stage in ('create', 'fill', 'drain', 'verify', 'swap', 'back', 'keep', 'drop', 'abort', 'done',
                                'aborted')),
  old_index    text not null,
  new_index    text not null,
  mapping      jsonb not null,
  keep         interval not null
               constraint rebuild_keep_is_sane check (keep between interval '0' and interval '366 days'),
  held_index   text,
  held_refresh text,
  started_at   timestamptz not null default now(),
  started_by   text not null default session_user,
  stage_at     timestamptz not null default now(),
  drop_at      timestamptz,
  finished_at  timestamptz
);
comment on table  catchword.rebuild is 'each rebuild of an index, and how far it came';
comment on column catchword.rebuild.id is 'the index carries it';
comment on column catchword.rebuild.collection is 'whose index is rebuilt';
comment on column catchword.rebuild.stage
  is 'create, fill, drain, verify, swap, keep, drop, done; back: the swap undone; abort, aborted';
comment on column catchword.rebuild.old_index is 'what readers saw before';
comment on column catchword.rebuild.new_index is 'what is filled and swapped in';
comment on column catchword.rebuild.mapping is 'the file of settings and mappings when it began';
comment on column catchword.rebuild.keep is 'how long the index that readers no longer see is kept in step';
comment on column catchword.rebuild.held_index
  is 'the index whose refresh is held while the alias moves; it must be set free again';
comment on column catchword.rebuild.held_refresh is 'its refresh_interval before; empty: none was set';
comment on column catchword.rebuild.started_at is 'when';
comment on column catchword.rebuild.started_by is 'by whom';
comment on column catchword.rebuild.stage_at is 'since when it is in this stage';
comment on column catchword.rebuild.drop_at is 'keep: when the index that readers do not see is dropped';
comment on column catchword.rebuild.finished_at is 'when it was done or undone';
-- one at a time: a third index would triple every write
create unique index rebuild_is_one on catchword.rebuild (collection) where finished_at is null;

create function catchword.rebuild_begin(
  p_collection text, p_new_index text, p_mapping jsonb, p_keep interval, p_who text
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  new_id bigint;
begin
  select * into col from catchword.collection where name = p_collection for update;
  if not found or cardinality(col.targets) = 0 then
    perform catchword.refuse(format('collection %s has no index yet', p_collection), 'run: catchword migrate');
  elsif cardinality(col.targets) > 1
        or exists (select from catchword.rebuild where collection = p_collection and finished_at is null) then
    perform catchword.refuse(format('a rebuild of %s is not finished', p_collection), 'see: catchword status');
  end if;
  insert into catchword.rebuild (collection, old_index, new_index, mapping, keep, started_by)
  values (p_collection, col.targets[1], p_new_index, p_mapping, p_keep, catchword.who(p_who))
  returning id into new_id;
  return new_id;
end $$;
comment on function catchword.rebuild_begin is 'writes down that an index is to be rebuilt';

-- What the index that goes refused may be in step with the one that stays: it is looked at again.
create function catchword.replay_refused(p_collection text, p_since timestamptz) returns bigint
language sql set search_path = pg_catalog, pg_temp as $$
  with letters as (
    delete from catchword.dead_job
     where collection = p_collection and name = 'index' and died_at >= p_since and reason in ('refused', 'too_large')
    returning collection, key, priority, tag, traceparent, reindex),
  scheduled as (
    insert into catchword.job (collection, key, priority, tag, traceparent, reindex)
    select collection, key, priority, tag, traceparent, -reindex from letters returning id)
  select count(*) from scheduled
$$;
comment on function catchword.replay_refused is 'schedules again what was refused since a rebuild began';

-- The only thing that changes a collection's list of targets once it has one. A new target is in the list before the
-- first job is left for it, and an index leaves the list before it is dropped.
create function catchword.rebuild_step(p_id bigint, p_from text, p_to text, p_who text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.rebuild;
  replayed bigint := 0;
begin
  select * into r from catchword.rebuild where id = p_id and stage = p_from for update;
  if not found then
    return false;
  end if;
  if (p_from, p_to) not in (
      ('create', 'fill'), ('fill', 'drain'), ('drain', 'verify'), ('verify', 'swap'), ('verify', 'drain'),
      ('swap', 'keep'), ('keep', 'back'), ('back', 'keep'), ('keep', 'drop'), ('drop', 'done'), ('create', 'abort'),
      ('fill', 'abort'), ('drain', 'abort'), ('verify', 'abort'), ('swap', 'abort'), ('abort', 'aborted')) then
    raise exception 'a rebuild does not go from % to %', p_from, p_to;
  end if;
  if p_to = 'fill' then
    update catchword.collection set targets = array[r.old_index, r.new_index] where name = r.collection;
    -- an index that had this name before, and was dropped on purpose, is not lost
    delete from catchword.sentinel where collection = r.collection and target = r.new_index;
  elsif p_to = 'keep' then
    update catchword.collection set targets = array[targets[2], targets[1]]
     where name = r.collection and cardinality(targets) = 2;
  elsif p_to = 'drop' then
    update catchword.collection set targets = targets[1:1] where name = r.collection;
  elsif p_to = 'abort' then
    update catchword.collection set targets = array[r.old_index] where name = r.collection;
    -- one that writes everything again goes on: the documents of the index that stays count as old, too
    perform catchword.end_reindex(f)
       from catchword.reindex f
      where f.collection = r.collection and f.tag = 'reindex.rebuild.' || r.id and f.ended_at is null
        and not f.rewrite;
  end if;
  if p_to in ('drop', 'abort') then
    replayed := catchword.replay_refused(r.collection, r.started_at);
  end if;
  update catchword.rebuild
     set stage = p_to, stage_at = now(), drop_at = case when p_to = 'keep' then now() + keep else drop_at end,
         held_index = case when p_to = 'keep' then null else held_index end,
         held_refresh = case when p_to = 'keep' then null else held_refresh end,
         finished_at = case when p_to in ('done', 'aborted') then now() end
   where id = p_id;
  if p_to in ('fill', 'keep', 'back', 'drop', 'abort') then
    insert into catchword.journal (who, what, collection, detail, count)
    select catchword.who(p_who), 'rebuild', c.name,
           case p_to when 'fill' then format('%s beside %s', r.new_index, r.old_index)
                     when 'keep' then format('readers see %s', c.targets[1])
                     when 'back' then 'back'
                     when 'abort' then format('undone, %s goes', r.new_index)
                     else format('only %s stays', c.targets[1]) end,
           nullif(replayed, 0)
      from catchword.collection c where c.name = r.collection;
  end if;
  return true;
end $$;
comment on function catchword.rebuild_step
  is 'from one stage to the next, with what belongs to it; false: it was not in that stage';

create function catchword.rebuild_hold(p_id bigint, p_index text, p_refresh text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.rebuild set held_index = p_index, held_refresh = p_refresh where id = p_id and held_index is null;
$$;
comment on function catchword.rebuild_hold is 'writes down whose refresh is about to be held, and what it was';

create function catchword.rebuild_release(p_id bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.rebuild set held_index = null, held_refresh = null where id = p_id;
$$;
comment on function catchword.rebuild_release is 'writes down that nothing is held any more';

create function catchword.rebuild_forget(p_id bigint) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  delete from catchword.rebuild where id = p_id and stage = 'create';
$$;
comment on function catchword.rebuild_forget is 'forgets a rebuild whose index could not be made: nothing was changed';

revoke execute on all functions in schema catchword from public;
