-- What the worker and operators do by SQL. The functions that write are security definer, so that a worker's role needs no right on
-- the application's tables but to read them. Nobody may call them until grants.sql says so.

create function catchword.schedule(
  p_collection text, p_keys text[], p_tag text default 'manual', p_priority integer default 1, p_delay interval default '0'
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  type_name text;
  scheduled bigint;
begin
  select key_type into type_name from catchword.collection where name = p_collection;
  if not found then
    perform catchword.refuse(format('there is no collection %L', p_collection), 'select name from catchword.collection');
  end if;
  -- the text of the key's own type: an upper-case uuid or ' 7' would otherwise never meet its row
  execute format('insert into catchword.job (collection, key, scheduled_at, priority, tag) select $1, k::%s::text, now() + $3, $4, $5 from unnest($2) as k', type_name)
    using p_collection, p_keys, p_delay, p_priority, left(p_tag, 100);
  get diagnostics scheduled = row_count;
  return scheduled;
end $$;
comment on function catchword.schedule is 'schedules keys by hand, from any language';

create function catchword.touch(p_collection text, p_keys text[], p_wait boolean default false) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  source_name text;
begin
  select * into strict col from catchword.collection where name = p_collection;
  select format('%I.%I', nspname, relname) into strict source_name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = col.source;
  -- locked in key order, so that two touches never wait for each other; -1 is never a revision, so the trigger always draws
  return query execute format(
    'with locked_rows as (select t.%2$I as key from only %1$s t where t.%2$I = any($1::text[]::%3$s[]) order by t.%2$I for no key update %5$s)
     update only %1$s t set %4$I = -1 from locked_rows where t.%2$I = locked_rows.key returning t.%2$I::text',
    source_name, col.key_column, col.key_type, col.revision_column, case when p_wait then '' else 'skip locked' end)
    using p_keys;
end $$;
comment on function catchword.touch is 'gives rows a new revision, and so a job; returns those it could lock';

-- Worker: expands what a related table's change left behind. One call is one short transaction's worth.
-- Rows are found now, after the change was committed: a row that was being inserted at that moment is found too.
create function catchword.expand_touches(p_collection text, p_rows integer, out jobs integer, out touched integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  source_name text;
  first_job record;
  relation text;
  relation_type text;
  ids bigint[];
  related_values text[];
  found_keys text[];
  touched_keys text[];
  whole boolean;
  problem text;
begin
  jobs := 0; touched := 0;
  select * into strict col from catchword.collection where name = p_collection;
  select format('%I.%I', nspname, relname) into strict source_name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = col.source;
  select id, key, cursor into first_job from catchword.job
   where name = 'touch' and collection = p_collection and scheduled_at <= now()
   order by enqueued_at, id limit 1 for update skip locked;
  if not found then
    return;
  end if;
  relation := split_part(first_job.key, '=', 1);

  begin
    -- -1 and not null: a null would make "character" of char(20), and that cuts the value to its first letter
    select format_type(atttypid, -1) into relation_type from pg_catalog.pg_attribute
     where attrelid = col.source and attname = relation and attnum > 0 and not attisdropped;
    if not found then
      raise exception 'table % has no column %', source_name, relation;
    end if;
    ids := array[first_job.id];
    related_values := array[substr(first_job.key, length(relation) + 2)];
    if first_job.cursor is null then
      -- small ones go together
      select array_agg(id), array_agg(substr(key, length(relation) + 2)) into ids, related_values from (
        select id, key from catchword.job
         where name = 'touch' and collection = p_collection and scheduled_at <= now() and cursor is null and split_part(key, '=', 1) = relation
         order by enqueued_at, id limit 500 for update skip locked) as due;
    end if;
    for attempt in 1..2 loop
      execute format('select array(select t.%2$I::text from only %1$s t where t.%4$I = any($1::text[]::%5$s[]) and ($2 is null or t.%2$I > $2::%3$s) order by t.%2$I limit $3)',
                     source_name, col.key_column, col.key_type, relation, relation_type)
        into found_keys using related_values, nullif(first_job.cursor, ''), p_rows + 1;
      whole := cardinality(found_keys) <= p_rows;
      exit when whole or cardinality(ids) = 1;
      -- too many together: the first one alone, in chunks
      ids := array[first_job.id];
      related_values := array[substr(first_job.key, length(relation) + 2)];
    end loop;
    found_keys := found_keys[1:p_rows];
    perform set_config('catchword.tag', 'touch', true), set_config('catchword.delay', '0', true);
    touched_keys := array(select * from catchword.touch(p_collection, found_keys));
  exception when others then
    -- a value that is not of the column's type, or the table's own triggers: tried alone, then given up
    get stacked diagnostics problem = message_text;
    if cardinality(ids) > 1 then
      update catchword.job set cursor = '' where id = any(ids);
    else
      with refused as (
        update catchword.job set attempts = attempts + 1, last_error = left(problem, 300), cursor = coalesce(cursor, ''),
               scheduled_at = now() + least(interval '1 minute' * 2 ^ attempts, interval '1 hour') * (0.75 + random() / 2)
         where id = first_job.id returning *)
      insert into catchword.dead_job
      select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, now(), 'refused' from refused where attempts >= 5;
      delete from catchword.job j using catchword.dead_job d where j.id = first_job.id and d.id = j.id;
    end if;
    jobs := 1;
    return;
  end;

  jobs := cardinality(ids);
  touched := cardinality(touched_keys);
  if cardinality(touched_keys) < cardinality(found_keys) then
    -- a locked row may be rolled back, so it does not count as done; nobody waits for it, it is met again in a moment
    update catchword.job set scheduled_at = now() + interval '1 second' * (1 + random()) where id = any(ids);
  elsif whole then
    delete from catchword.job where id = any(ids);
  else
    update catchword.job set cursor = found_keys[p_rows] where id = first_job.id;
  end if;
end $$;
comment on function catchword.expand_touches is 'touches the rows that refer to changed rows of related tables';

-- Raising the sequence is the one thing here that can hand out a number twice if done carelessly: one at a time, and never back.
create function catchword.raise_revision(p_above bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current bigint;
begin
  if p_above >= 2::bigint ^ 61 then
    return false;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('catchword.revision', 0));
  select last_value into current from catchword.revision;
  if p_above >= current then
    perform setval('catchword.revision', (p_above + 1000000) / 2 * 2);
  end if;
  return true;
end $$;
comment on function catchword.raise_revision is 'lifts the sequence above a version seen in Elasticsearch; false: too high to be true';

-- A number for keys that have a document and no row: the record of a delete that nobody recorded.
create function catchword.record_gone(p_collection text, p_keys text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  recorded bigint;
begin
  insert into catchword.tombstone as t (collection, key, revision)
  select p_collection, k, nextval('catchword.revision') + 1 from (select distinct unnest(p_keys) order by 1) as gone (k)
  on conflict (collection, key) do update set revision = greatest(t.revision, excluded.revision), deleted_at = excluded.deleted_at;
  get diagnostics recorded = row_count;
  return recorded;
end $$;
comment on function catchword.record_gone is 'records a new number for keys that have no row';

-- After a failover or a restore the server has another timeline, or is another server: commits may be lost and their numbers given
-- again. The sequence jumps far ahead, before anything is written. A copy of the data folder that was put back, and a crash with
-- synchronous_commit off, change neither: all that shows is that the server was started anew, so every start costs a jump, and nobody
-- is alarmed by it. A jump of a fixed width would end at the same number when one backup is put back twice. So it also goes by the
-- clock, 2^20 numbers a second since 2020: more than anybody draws, and below 2^53 for 270 years.
create function catchword.note_server() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current_system bigint := (select system_identifier from pg_control_system());
  current_timeline integer := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;
  before catchword.installation;
  current bigint;
  why text;
  switched boolean := false;
begin
  select * into before from catchword.installation for update;
  perform pg_advisory_xact_lock(hashtextextended('catchword.revision', 0));
  select last_value into current from catchword.revision;
  if (before.system_identifier, before.timeline) is distinct from (current_system, current_timeline) and before.system_identifier is not null then
    switched := true;
    why := format('another server or timeline: %s/%s, was %s/%s', current_system, current_timeline, before.system_identifier, before.timeline);
  elsif current < before.last_revision then
    switched := true;
    why := format('the sequence went back: %s, was %s', current, before.last_revision);
  elsif before.started_at <> pg_postmaster_start_time() then
    why := format('the server was started anew: %s, was %s', pg_postmaster_start_time(), before.started_at);
  end if;
  if why is not null then
    perform setval('catchword.revision', greatest(
      greatest(current, before.last_revision) + case when switched then 1::bigint << 40 else 1::bigint << 32 end,
      floor(extract(epoch from clock_timestamp() - timestamptz '2020-01-01 00:00:00+00') * (1 << 19))::bigint * 2));
    insert into catchword.journal (who, what, detail) values ('catchword', 'raise', why);
  end if;
  if switched then
    -- equal numbers may stand for different documents now, and documents for rows that were never committed
    perform catchword.ask_audit(name, true, 'another server') from catchword.collection;
  end if;
  update catchword.installation
     set system_identifier = current_system, timeline = current_timeline, started_at = pg_postmaster_start_time(), seen_at = now(),
         last_revision = (select last_value from catchword.revision);
  return switched;
end $$;
comment on function catchword.note_server is 'remembers which server this is, and raises the sequence where numbers may be given twice; true: commits may be lost';
