-- What operators do to the queue, by functions of the migrator's: whoever may call them needs no right on the tables,
-- and the journal says who it was as Postgres knows it. What the person said of itself is written beside it.
create function catchword.who(p_said text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when p_said is null or p_said = '' then session_user::text
              else format('%s(%s)', session_user, left(p_said, 100)) end
$$;
comment on function catchword.who
  is 'who does something, for the journal: the role of the session, and what the person says of itself';

create function catchword.pause(p_collection text, p_reason text, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into catchword.pause (collection, by, reason) values (p_collection, catchword.who(p_who), p_reason)
  on conflict (collection) do nothing;
  if not found then
    return false;
  end if;
  insert into catchword.journal (who, what, collection, detail)
  values (catchword.who(p_who), 'pause', p_collection, p_reason);
  return true;
end $$;
comment on function catchword.pause is 'stops the work on a collection; false: it was paused already';

create function catchword.resume(p_collection text, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  paused_since timestamptz;
begin
  delete from catchword.pause where collection = p_collection returning since into paused_since;
  if not found then
    return false;
  end if;
  insert into catchword.journal (who, what, collection, detail)
  values (catchword.who(p_who), 'resume', p_collection, format('paused since %s', paused_since));
  return true;
end $$;
comment on function catchword.resume is 'goes on with the work on a collection; false: it was not paused';

-- Scheduled again as a new demand, with no attempts; a job is always in one of the two tables. Everything that is
-- given must fit; an empty error means those without one.
create function catchword.replay(
  p_ids bigint[], p_collection text, p_reason text, p_tag text, p_since timestamptz, p_error text, p_who text,
  p_words text
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  replayed bigint;
begin
  with letters as (
    delete from catchword.dead_job
     where (p_ids is null or id = any(p_ids)) and (p_collection is null or collection = p_collection)
       and (p_reason is null or reason = p_reason) and (p_tag is null or tag = p_tag)
       and (p_since is null or died_at >= p_since)
       and (p_error is null or coalesce(last_error, '') = p_error)
    returning name, collection, key, priority, tag, traceparent, reindex
  )
  insert into catchword.job (name, collection, key, priority, tag, traceparent, reindex)
  select name, collection, key, priority, tag, traceparent, -reindex from letters;
  get diagnostics replayed = row_count;
  if replayed > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'replay', p_collection, p_words, replayed);
  end if;
  return replayed;
end $$;
comment on function catchword.replay is 'schedules dead letters again; the words are for the journal';

create function catchword.discard(
  p_ids bigint[], p_collection text, p_reason text, p_tag text, p_since timestamptz, p_error text, p_who text,
  p_words text
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  discarded bigint;
begin
  delete from catchword.dead_job
   where (p_ids is null or id = any(p_ids)) and (p_collection is null or collection = p_collection)
     and (p_reason is null or reason = p_reason) and (p_tag is null or tag = p_tag)
     and (p_since is null or died_at >= p_since)
     and (p_error is null or coalesce(last_error, '') = p_error);
  get diagnostics discarded = row_count;
  if discarded > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'discard', p_collection, p_words, discarded);
  end if;
  return discarded;
end $$;
comment on function catchword.discard is 'deletes dead letters; the words are for the journal';

-- Burying by hand: for an operator who knows which document does the harm and will not wait until it is found. A touch
-- is named by its own key, such as `document_id=7`.
create function catchword.bury(
  p_collection text, p_key text, p_why text default 'buried by hand', p_who text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  buried bigint;
begin
  with moved as (
    delete from catchword.job
     where collection = p_collection and key = p_key
    returning *
  ),
  replaced as (
    delete from catchword.dead_job d using moved m
     where d.key = m.key and d.collection = m.collection and d.name = m.name
  ),
  kept as (
    insert into catchword.dead_job
      (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error,
       traceparent, cursor, reason, reindex)
    select distinct on (name) id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts,
           left(p_why, 300), traceparent, cursor, 'by_hand', max(abs(reindex)) over (partition by name)
      from moved order by name, id
  )
  select count(*) into buried from moved;
  if buried > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'bury', p_collection, format('%s: %s', p_key, p_why), buried);
  end if;
  return buried;
end $$;
comment on function catchword.bury
  is 'moves the jobs of one key, or of one touch, to the dead letters, as one letter; how many jobs';

-- They are put behind everything else and not taken off: a tag is what the application says it is, and a large
-- statement's jobs, which are the only memory of what changed, may have the same one. To look at a key that agrees
-- costs little.
create function catchword.call_off(p_collection text, p_tag text, p_who text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  called_off bigint;
begin
  update catchword.job set priority = catchword.priority_called_off()
   where collection = p_collection and tag = p_tag
     and priority >= catchword.priority_part() and priority < catchword.priority_called_off();
  get diagnostics called_off = row_count;
  if called_off > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'call off', p_collection, p_tag, called_off);
  end if;
  return called_off;
end $$;
comment on function catchword.call_off
  is 'puts the jobs of a bulk that was a mistake behind everything else, by their tag';

-- A worker runs it, at its next round. One of the same kind that is asked for and has not begun is as good.
create function catchword.start_audit(
  p_collection text, p_repair boolean default true, p_content boolean default false, p_who text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  asked bigint;
begin
  select a.id into asked
    from catchword.audit a
    join catchword.collection c on c.name = a.collection and a.targets @> c.targets and a.targets <@ c.targets
   where a.collection = p_collection and a.reason = 'asked' and a.repair = p_repair and a.content = p_content
     and a.finished_at is null and a.stopped_at is null and a.looked = 0
   order by a.id limit 1;
  if found then
    return asked;
  end if;
  insert into catchword.audit (collection, targets, whole, repair, content, reason, asked_by, base)
  select c.name, c.targets, true, p_repair, p_content, 'asked', catchword.who(p_who),
         catchword.bulk_base(c.name, catchword.priority_part())
    from catchword.collection c where c.name = p_collection and c.targets <> '{}'
  returning id into asked;
  if found then
    insert into catchword.journal (who, what, collection, detail)
    values (catchword.who(p_who), 'audit', p_collection,
            format('%s%s%s', asked, case when p_repair then ', with repair' end,
                   case when p_content then ', with content' end));
  end if;
  return asked;
end $$;
comment on function catchword.start_audit
  is 'asks for an audit of a whole collection, which a worker runs; null: it has no index yet';

create function catchword.stop_audit(p_id bigint, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  stopped catchword.audit;
begin
  -- a rebuild's own is part of the rebuild, which is aborted instead
  update catchword.audit set stopped_at = now()
   where id = p_id and finished_at is null and stopped_at is null and reason <> 'rebuild'
  returning * into stopped;
  if not found then
    return false;
  end if;
  insert into catchword.journal (who, what, collection, detail)
  values (catchword.who(p_who), 'audit stop', stopped.collection, format('%s, %s looked at', p_id, stopped.looked));
  return true;
end $$;
comment on function catchword.stop_audit is 'stops an audit, whoever runs it; false: it was over already';

-- As catchword.schedule, and the journal says who asked: for a person who wants a key looked at now.
create function catchword.look_again(p_collection text, p_keys text[], p_who text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  scheduled bigint := catchword.schedule(p_collection, p_keys, 'look again');
begin
  if scheduled > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'look again', p_collection, left(array_to_string(p_keys[1:20], ', '), 300),
            scheduled);
  end if;
  return scheduled;
end $$;
comment on function catchword.look_again is 'schedules keys by hand, and writes into the journal who wanted it';

revoke execute on all functions in schema catchword from public;
