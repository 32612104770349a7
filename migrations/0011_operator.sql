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
-- given must fit.
create function catchword.replay(
  p_ids bigint[], p_collection text, p_reason text, p_tag text, p_since timestamptz, p_who text, p_words text
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
    returning name, collection, key, priority, tag, traceparent
  )
  insert into catchword.job (name, collection, key, priority, tag, traceparent)
  select name, collection, key, priority, tag, traceparent from letters;
  get diagnostics replayed = row_count;
  if replayed > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'replay', p_collection, p_words, replayed);
  end if;
  return replayed;
end $$;
comment on function catchword.replay is 'schedules dead letters again; the words are for the journal';

create function catchword.discard(
  p_ids bigint[], p_collection text, p_reason text, p_tag text, p_since timestamptz, p_who text, p_words text
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  discarded bigint;
begin
  delete from catchword.dead_job
   where (p_ids is null or id = any(p_ids)) and (p_collection is null or collection = p_collection)
     and (p_reason is null or reason = p_reason) and (p_tag is null or tag = p_tag)
     and (p_since is null or died_at >= p_since);
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
       traceparent, cursor, reason)
    select distinct on (name) id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts,
           left(p_why, 300), traceparent, cursor, 'by_hand'
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

revoke execute on all functions in schema catchword from public;
