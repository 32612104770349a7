-- Attaching a table: the column, the triggers and the floor that make it a collection.
-- `attach_statements` writes the SQL as text, so that `catchword migrate --dry-run` can print just what `attach` would run.

-- A refusal has its own SQLSTATE, so that a caller can tell it from an accident. The hint says what to do.
create function catchword.refuse(p_message text, p_hint text) returns void
language plpgsql as $$
begin
  raise exception using errcode = 'CW001', message = p_message, hint = p_hint;
end $$;
comment on function catchword.refuse is 'raises an error with a SQLSTATE of our own and a hint';

create function catchword.check_source(
  p_collection text, p_source regclass, p_key text, p_revision text, p_watch text[], p_touches jsonb
) returns void
language plpgsql as $$
declare
  source_name constant text := p_source::text;
  rel    pg_catalog.pg_class;
  att    pg_catalog.pg_attribute;
  touch  jsonb;
  found_name text;
begin
  if p_collection !~ '^[a-z][a-z0-9_]{0,39}$' then
    perform catchword.refuse(format('%L cannot be the name of a collection', p_collection),
      'use a lower-case letter, then up to 39 letters, digits and underscores');
  end if;
  select * into rel from pg_catalog.pg_class where oid = p_source;
  if rel.relkind = 'p' or rel.relispartition then
    perform catchword.refuse(format('%s is partitioned, and partitioned tables cannot be attached yet', source_name),
      'attach a plain table');
  elsif rel.relkind <> 'r' then
    perform catchword.refuse(format('%s is not a plain table', source_name),
      'name the table that holds the rows; views and foreign tables have no triggers that could be trusted');
  elsif rel.relpersistence <> 'p' then
    perform catchword.refuse(format('%s is temporary or unlogged: its rows do not survive a crash', source_name),
      'attach a permanent table');
  elsif exists (select from pg_catalog.pg_inherits where inhrelid = p_source or inhparent = p_source) then
    perform catchword.refuse(format('%s inherits or is inherited from, and such tables cannot be attached yet', source_name),
      'attach a plain table');
  elsif rel.relrowsecurity then
    perform catchword.refuse(format('%s has row security: rows hidden by a policy would look deleted', source_name),
      format('run "alter table %s disable row level security", or attach another table', source_name));
  elsif exists (select from catchword.collection where source = p_source and name <> p_collection) then
    select name into found_name from catchword.collection where source = p_source and name <> p_collection;
    perform catchword.refuse(format('%s is attached already, as collection %s', source_name, found_name),
      format('detach it first: catchword detach %s', found_name));
  end if;

  select * into att from pg_catalog.pg_attribute where attrelid = p_source and attname = p_key and attnum > 0 and not attisdropped;
  if not found then
    perform catchword.refuse(format('%s has no column %I', source_name, p_key), 'correct key = "…"');
  elsif format_type(att.atttypid, null) not in ('uuid', 'bigint', 'integer', 'text') then
    perform catchword.refuse(format('the key %s.%I is of type %s', source_name, p_key, format_type(att.atttypid, att.atttypmod)),
      'a key is of type uuid, bigint, integer or text');
  elsif not att.attnotnull then
    perform catchword.refuse(format('the key %s.%I may be null', source_name, p_key),
      format('run "alter table %s alter column %I set not null"', source_name, p_key));
  elsif exists (select from pg_catalog.pg_collation where oid = att.attcollation and not collisdeterministic) then
    perform catchword.refuse(format('the key %s.%I has a nondeterministic collation: different texts would be one key', source_name, p_key),
      'give the key a deterministic collation');
  elsif not exists (select from pg_catalog.pg_index i where i.indrelid = p_source and i.indisunique and i.indimmediate
                      and i.indisvalid and i.indpred is null and i.indnkeyatts = 1 and i.indkey[0] = att.attnum) then
    perform catchword.refuse(format('the key %s.%I is not unique', source_name, p_key),
      format('run "alter table %s add unique (%I)", not deferrable', source_name, p_key));
  end if;

  select * into att from pg_catalog.pg_attribute where attrelid = p_source and attname = p_revision and attnum > 0 and not attisdropped;
  if found then
    if coalesce(col_description(p_source, att.attnum), '') not like 'catchword%' then
      perform catchword.refuse(format('%s has a column %I that catchword did not make', source_name, p_revision),
        format('choose another name with revision = "…"; if it is meant for catchword, say so: comment on column %s.%I is ''catchword: revision''', source_name, p_revision));
    elsif att.atttypid <> 'bigint'::regtype or att.attnotnull or att.atthasdef or att.attgenerated <> '' or att.attidentity <> '' then
      perform catchword.refuse(format('the column %s.%I is not what catchword needs', source_name, p_revision),
        'it must be bigint, nullable, with no default: drop it, and catchword migrate makes it');
    end if;
  end if;

  -- BEFORE triggers fire in the order of their names, compared byte by byte. A later one could wait while our number grows old.
  select tgname into found_name from pg_catalog.pg_trigger
   where tgrelid = p_source and not tgisinternal and tgname > 'zzz_catchword_revision' collate "C"
     and tgname not like 'zzz\_catchword\_%'
     and tgtype & 1 = 1 and tgtype & 2 = 2 and tgtype & (4 | 16) <> 0
   order by tgname limit 1;
  if found then
    perform catchword.refuse(format('the trigger %I on %s fires after zzz_catchword_revision', found_name, source_name),
      format('BEFORE ROW triggers fire in the order of their names, and ours must be last: alter trigger %I on %s rename to "…"', found_name, source_name));
  end if;

  foreach found_name in array p_watch loop
    select * into att from pg_catalog.pg_attribute where attrelid = p_source and attname = found_name and attnum > 0 and not attisdropped;
    if not found then
      perform catchword.refuse(format('%s has no column %I', source_name, found_name), 'correct watch = […]');
    elsif att.attgenerated <> '' then
      perform catchword.refuse(format('%s.%I is generated, and cannot be watched', source_name, found_name),
        'watch the columns it is generated from');
    end if;
  end loop;

  for touch in select * from jsonb_array_elements(p_touches) loop
    if to_regclass(touch ->> 'table') is null then
      perform catchword.refuse(format('the related table %s does not exist', touch ->> 'table'), 'correct touches = [{ table = "…" }]');
    elsif to_regclass(touch ->> 'table') = p_source then
      perform catchword.refuse(format('%s cannot touch itself: rows that refer to each other would be touched for ever', source_name), 'name another table in touches');
    elsif not exists (select from pg_catalog.pg_class where oid = to_regclass(touch ->> 'table') and relkind = 'r' and not relispartition) then
      perform catchword.refuse(format('the related table %s is not a plain table', touch ->> 'table'), 'name a plain table in touches');
    elsif not exists (select from pg_catalog.pg_attribute where attrelid = to_regclass(touch ->> 'table') and attname = touch ->> 'column' and attnum > 0 and not attisdropped) then
      perform catchword.refuse(format('the related table %s has no column %I', touch ->> 'table', touch ->> 'column'), 'correct touches = [{ column = "…" }]');
    elsif not exists (select from pg_catalog.pg_attribute where attrelid = p_source and attname = touch ->> 'row_column' and attnum > 0 and not attisdropped) then
      perform catchword.refuse(format('%s has no column %I', source_name, touch ->> 'row_column'), 'correct touches = [{ row_column = "…" }]');
    end if;
  end loop;
end $$;
comment on function catchword.check_source is 'refuses a table that cannot be attached, with a sentence and a hint';

-- The first enqueued_at of a bulk: among what is due and was never refused, so that bulks of one priority interleave one by one.
create function catchword.bulk_base(p_collection text, p_priority integer) returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(
    (select least(enqueued_at, now()) from catchword.job
      where collection = p_collection and priority = p_priority and name = 'index'
        and scheduled_at <= now() and attempts = 0
        and not exists (select from catchword.pause where pause.collection = p_collection)
      order by enqueued_at, id limit 1),
    now());
$$;
comment on function catchword.bulk_base is 'where a bulk begins in the walk, so that it interleaves with the bulks before it';

create function catchword.attach_statements(
  p_collection text, p_source regclass, p_key text, p_revision text, p_watch text[], p_touches jsonb, p_delay integer
) returns setof text
language plpgsql stable as $$
declare
  source_name constant text := (select format('%I.%I', nspname, relname) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = p_source);
  head constant text := ' returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp';
  -- A setting can never fail a write: it is taken only where it looks right. After a transaction-local set_config a setting is ''.
  due  constant text := format($q$now() + case when current_setting('catchword.delay', true) ~ '^[0-9]{1,4}$' and current_setting('catchword.delay', true)::integer <= 3600 then make_interval(secs => current_setting('catchword.delay', true)::integer) else interval '%s seconds' end$q$, p_delay);
  tag  constant text := $q$coalesce(nullif(left(current_setting('catchword.tag', true), 100), ''), lower(tg_op))$q$;
  trace constant text := $q$nullif(left(current_setting('catchword.traceparent', true), 55), '')$q$;
  watched text := 'true';
  changed text := '';
  draw_again text;
  touch jsonb;
  n integer := 0;
  f text;
  related text;
  function_body text;
begin
  if not exists (select from pg_catalog.pg_attribute where attrelid = p_source and attname = p_revision and attnum > 0 and not attisdropped) then
    return next format('alter table %s add column %I bigint', source_name, p_revision);
    return next format('comment on column %s.%I is %L', source_name, p_revision, 'catchword: the revision of this row');
  end if;

  if cardinality(p_watch) > 0 then
    select string_agg(format('new.%1$I is distinct from old.%1$I', w), ' or ' order by w) into watched
      from (select unnest(p_watch) union select p_key union select p_revision) as t (w);
    -- only a drawn number is new in the statement; joined by hash, because the plan is kept from a statement of another size
    changed := format(' where n.%1$I is not null and not exists (select from old_rows o where o.%1$I = n.%1$I)', p_revision);
  end if;

  f := format('catchword.%I', p_collection || '_revision');
  if watched = 'true' then
    return next format('create or replace function %s() returns trigger language plpgsql as $f$
begin
  new.%I := nextval(''catchword.revision'');
  return new;
end $f$', f, p_revision);
  else
    return next format('create or replace function %1$s() returns trigger language plpgsql as $f$
begin
  if tg_op = ''INSERT'' then
    new.%2$I := nextval(''catchword.revision'');
  elsif %3$s then
    new.%2$I := nextval(''catchword.revision'');
  end if;
  return new;
end $f$', f, p_revision, watched);
  end if;
  return next format('create or replace trigger zzz_catchword_revision before insert or update on %s for each row execute function %s()', source_name, f);

  -- jobs of a statement: live, or spaced like a reindex where there are more than 1,000. `offset 0` asks for the base once and not once
  -- per row, which took 40 s for 10,000 rows
  function_body := $q$
  perform from %1$s offset 1000 limit 1;
  if found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select %2$L, n.%3$I::text, b.base + row_number() over () * interval '1 microsecond', %4$s, 100, %5$s, %6$s
      from %1$s n, (select catchword.bulk_base(%2$L, 100) offset 0) as b (base)%7$s;
  else
    insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
    select %2$L, n.%3$I::text, %4$s, 1, %5$s, %6$s from %1$s n%7$s;
  end if;$q$;

  -- a number drawn before a wait at the unique index may lie below the delete it waited for; such a row draws again
  draw_again := format('
  if current_setting(''transaction_isolation'') in (''read committed'', ''read uncommitted'') then
    -- asked first, because even an update of nothing costs as much as the job; `offset 0` asks the index row by row, whatever the plan
    -- that is kept from a statement of another size
    if exists (select from new_rows n where exists (
         select from catchword.tombstone d where d.collection = %3$L and d.key = n.%4$I::text and d.revision > n.%2$I offset 0)) then
      update only %1$s t set %2$I = -1 from new_rows n join catchword.tombstone d on d.collection = %3$L and d.key = n.%4$I::text
       where d.revision > n.%2$I and t.%4$I = n.%4$I and t.%2$I = n.%2$I;
    end if;
  else
    -- an older snapshot does not show the delete: every row draws again. It may still show the deleted row, which has another number
    update only %1$s t set %2$I = -1 from new_rows n where t.%4$I = n.%4$I and t.%2$I = n.%2$I;
  end if;', source_name, p_revision, p_collection, p_key);

  -- as a rule there are few rows, and none lies below a delete: then one statement asks both and leaves the jobs, all or none. Each
  -- statement of a trigger costs about as much as the row of a job
  f := format('catchword.%I', p_collection || '_inserted');
  return next format('create or replace function %s()', f) || head || format(' as $f$
begin
  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
  select %1$L, n.%2$I::text, %4$s, 1, %5$s, %6$s
    from new_rows n
   where current_setting(''transaction_isolation'') in (''read committed'', ''read uncommitted'')
     and not exists (select from new_rows offset 1000)
     and not exists (select from new_rows n where exists (
           select from catchword.tombstone d where d.collection = %1$L and d.key = n.%2$I::text and d.revision > n.%3$I offset 0));
  if found then
    return null;
  end if;', p_collection, p_key, p_revision, due, tag, trace) || draw_again || format(function_body, 'new_rows', p_collection, p_key, due, tag, trace, '') || '
  return null;
end $f$';
  return next format('create or replace trigger catchword_inserted after insert on %s referencing new table as new_rows for each statement execute function %s()', source_name, f);

  -- update: its rows; and where keys changed, the old ones are gone, and a new one may have waited for a delete. Found by statement and
  -- not by row, so that over a thousand old keys stand behind live writes too; by `except`, which is quick whatever size the plan is from
  f := format('catchword.%I', p_collection || '_updated');
  return next format('create or replace function %s()', f) || head
    || case when changed = '' then '' else ' set enable_nestloop = off' end || format(' as $f$
declare
  left_keys constant text[] := array(select k::text from (select o.%1$I from old_rows o except select n.%1$I from new_rows n) as gone (k));
begin', p_key) || format(function_body, 'new_rows', p_collection, p_key, due, tag, trace, changed) || format('
  if cardinality(left_keys) > 0 then
    insert into catchword.tombstone as t (collection, key, revision)
    select %1$L, k, nextval(''catchword.revision'') + 1 from unnest(left_keys) k where octet_length(k) <= 512
    on conflict (collection, key) do update set revision = greatest(t.revision, excluded.revision), deleted_at = excluded.deleted_at;', p_collection)
    || format(function_body, 'unnest(left_keys)', p_collection, 'n', due, tag, trace, '')
    -- a few rows are found by their key, not by reading the table
    || case when changed = '' then '' else '
    perform set_config(''enable_nestloop'', ''on'', true);' end || draw_again || '
  end if;
  return null;
end $f$';
  return next format('create or replace trigger catchword_updated after update on %s referencing old table as old_rows new table as new_rows for each statement execute function %s()', source_name, f);

  f := format('catchword.%I', p_collection || '_deleted');
  return next format('create or replace function %s()', f) || head || ' as $f$
begin' || format('
  insert into catchword.tombstone as t (collection, key, revision)
  select %1$L, o.%2$I::text, nextval(''catchword.revision'') + 1 from old_rows o where octet_length(o.%2$I::text) <= 512
  on conflict (collection, key) do update set revision = greatest(t.revision, excluded.revision), deleted_at = excluded.deleted_at;', p_collection, p_key)
    || format(function_body, 'old_rows', p_collection, p_key, due, tag, trace, '') || '
  return null;
end $f$';
  return next format('create or replace trigger catchword_deleted after delete on %s referencing old table as old_rows for each statement execute function %s()', source_name, f);

  f := format('catchword.%I', p_collection || '_truncated');
  return next format('create or replace function %s()', f) || head || ' as $f$
begin
  if current_setting(''transaction_isolation'') not in (''read committed'', ''read uncommitted'') then
    -- the snapshot is older than the lock: rows committed since would be emptied without a trace
    raise exception using errcode = ''CW001'', message = ''truncate of a table attached to catchword needs read committed'', hint = ''use delete, or begin the transaction with: isolation level read committed'';
  end if;' || format('
  insert into catchword.tombstone as t (collection, key, revision)
  select %1$L, o.%2$I::text, nextval(''catchword.revision'') + 1 from only %3$s o where octet_length(o.%2$I::text) <= 512
  on conflict (collection, key) do update set revision = greatest(t.revision, excluded.revision), deleted_at = excluded.deleted_at;', p_collection, p_key, source_name)
    || format(function_body, 'only ' || source_name, p_collection, p_key, due, tag, trace, '') || '
  return null;
end $f$';
  return next format('create or replace trigger catchword_truncated before truncate on %s for each statement execute function %s()', source_name, f);

  -- related tables: one job per changed value, and nothing else; the worker finds the rows after the commit
  for touch in select * from jsonb_array_elements(p_touches) loop
    n := n + 1;
    related := (select format('%I.%I', nspname, relname) from pg_catalog.pg_class c join pg_catalog.pg_namespace s on s.oid = c.relnamespace where c.oid = to_regclass(touch ->> 'table'));
    f := format('catchword.%I', p_collection || '_touch_' || n);
    return next format('create or replace function %s()', f) || head || format(' as $f$
begin
  if tg_op = ''TRUNCATE'' then
    if current_setting(''transaction_isolation'') not in (''read committed'', ''read uncommitted'') then
      raise exception using errcode = ''CW001'', message = ''truncate of a table that catchword watches needs read committed'', hint = ''use delete, or begin the transaction with: isolation level read committed'';
    end if;
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select ''touch'', %1$L, %2$L || v, 1, %3$s, %4$s from (select %5$I::text from only %6$s group by 1) as changed (v) where v is not null;
  elsif tg_op = ''INSERT'' then
    %7$s
  elsif tg_op = ''DELETE'' then
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select ''touch'', %1$L, %2$L || v, 1, %3$s, %4$s from (select %5$I::text from old_rows group by 1) as changed (v) where v is not null;
  else
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select ''touch'', %1$L, %2$L || v, 1, %3$s, %4$s from (select %5$I::text from old_rows union select %5$I::text from new_rows) as changed (v) where v is not null;
  end if;
  return null;
end $f$', p_collection, (touch ->> 'row_column') || '=', tag, trace, touch ->> 'column', related,
      -- under a foreign key nobody can have referred to a row before it was there
      case when exists (select from pg_catalog.pg_constraint k
              join pg_catalog.pg_attribute mine on mine.attrelid = p_source and mine.attname = touch ->> 'row_column' and k.conkey = array[mine.attnum]
              join pg_catalog.pg_attribute theirs on theirs.attrelid = k.confrelid and theirs.attname = touch ->> 'column' and k.confkey = array[theirs.attnum]
             where k.contype = 'f' and k.convalidated and k.conrelid = p_source and k.confrelid = to_regclass(touch ->> 'table'))
           then 'null;'
           else format('insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select ''touch'', %1$L, %2$L || v, 1, %3$s, %4$s from (select %5$I::text from new_rows group by 1) as changed (v) where v is not null;',
             p_collection, (touch ->> 'row_column') || '=', tag, trace, touch ->> 'column') end);
    return next format('create or replace trigger %I after insert on %s referencing new table as new_rows for each statement execute function %s()', 'catchword_' || p_collection || '_' || n || '_insert', related, f);
    return next format('create or replace trigger %I after update on %s referencing old table as old_rows new table as new_rows for each statement execute function %s()', 'catchword_' || p_collection || '_' || n || '_update', related, f);
    return next format('create or replace trigger %I after delete on %s referencing old table as old_rows for each statement execute function %s()', 'catchword_' || p_collection || '_' || n || '_delete', related, f);
    return next format('create or replace trigger %I before truncate on %s for each statement execute function %s()', 'catchword_' || p_collection || '_' || n || '_truncate', related, f);
  end loop;

  -- nobody may hang these functions on a table of their own and forge jobs with them
  return next (select format('revoke execute on function %s from public', string_agg(format('catchword.%I()', p_collection || suffix), ', '))
    from unnest(array['_revision', '_inserted', '_updated', '_deleted', '_truncated'] || array(select '_touch_' || i from generate_series(1, n) i)) as s (suffix));
end $$;
comment on function catchword.attach_statements is 'the SQL that attaches a table, as text; attach runs it';

-- Everything that a collection rests on, and what is wrong with it. No row: all is well. `type` is pg_trigger.tgtype: row 1, before 2,
-- insert 4, delete 8, update 16, truncate 32.
create function catchword.broken_triggers(p_collection text) returns table (problem text)
language sql stable set search_path = pg_catalog, pg_temp as $$
  with wanted as (
    select c.source::oid as relation, t.name, t.type, format('catchword.%I', c.name || t.suffix) as function
      from catchword.collection c,
           (values ('zzz_catchword_revision', '_revision', 23), ('catchword_inserted', '_inserted', 4), ('catchword_updated', '_updated', 16),
                   ('catchword_deleted', '_deleted', 8), ('catchword_truncated', '_truncated', 34)) as t (name, suffix, type)
     where c.name = p_collection
    union all
    select to_regclass(touch.value ->> 'table')::oid, 'catchword_' || c.name || '_' || touch.n || o.op, o.type, format('catchword.%I', c.name || '_touch_' || touch.n)
      from catchword.collection c, jsonb_array_elements(c.touches) with ordinality as touch (value, n),
           (values ('_insert', 4), ('_update', 16), ('_delete', 8), ('_truncate', 34)) as o (op, type)
     where c.name = p_collection
  )
  select case when r.oid is null then format('a table that trigger %s belongs to is gone', w.name)
              when t.oid is null then format('trigger %s on %s is missing', w.name, r.oid::regclass)
              when t.tgenabled not in ('O', 'A') then format('trigger %s on %s is disabled', w.name, r.oid::regclass)
              else format('trigger %s on %s is not the one that catchword made', w.name, r.oid::regclass) end
    from wanted w
    left join pg_class r on r.oid = w.relation
    left join pg_trigger t on t.tgrelid = w.relation and t.tgname = w.name and not t.tgisinternal
   where r.oid is null or t.oid is null or t.tgenabled not in ('O', 'A')
      or t.tgfoid is distinct from to_regproc(w.function)::oid or t.tgtype <> w.type or t.tgqual is not null or cardinality(t.tgattr::smallint[]) > 0
  union all
  -- the triggers name the key's column, so every write of the application fails until they are made anew
  select case when a.attname is null then format('the key %s.%I is missing, and writes fail; correct key = "…"', c.source, c.key_column)
              else format('the key %s.%I is of type %s now, and was %s', c.source, c.key_column, format_type(a.atttypid, null), c.key_type) end
    from catchword.collection c join pg_class r on r.oid = c.source
    left join pg_attribute a on a.attrelid = c.source and a.attname = c.key_column and a.attnum > 0 and not a.attisdropped
   where c.name = p_collection and format_type(a.atttypid, null) is distinct from c.key_type
  union all
  select format('the view %s does not return (key %s, revision bigint, body)', c.view, c.key_type)
    from catchword.collection c
   where c.name = p_collection and to_regclass(c.view) is not null
     and (select count(*) from pg_attribute a
           where a.attrelid = to_regclass(c.view) and a.attnum > 0 and not a.attisdropped
             and (a.attname, format_type(a.atttypid, null)) in (('key', c.key_type), ('revision', 'bigint'), ('body', 'json'), ('body', 'jsonb'))) < 3
  union all
  select format('trigger %I on %s fires after zzz_catchword_revision', t.tgname, c.source)
    from catchword.collection c
    join pg_trigger t on t.tgrelid = c.source and not t.tgisinternal and t.tgname > 'zzz_catchword_revision' collate "C"
     and t.tgname not like 'zzz\_catchword\_%' and t.tgtype & 1 = 1 and t.tgtype & 2 = 2 and t.tgtype & (4 | 16) <> 0
   where c.name = p_collection
  union all
  select format('the column %s.%I is missing', c.source, c.revision_column)
    from catchword.collection c join pg_class r on r.oid = c.source
   where c.name = p_collection
     and not exists (select from pg_attribute a where a.attrelid = c.source and a.attname = c.revision_column and a.attnum > 0 and not a.attisdropped)
  union all
  select format('%s has row security', c.source) from catchword.collection c join pg_class r on r.oid = c.source where c.name = p_collection and r.relrowsecurity
  union all
  select format('%s is not attached', p_collection) where not exists (select from catchword.collection where name = p_collection);
$$;
comment on function catchword.broken_triggers is 'what is wrong with the triggers, the columns and the view of a collection; no row: nothing';

-- The floor is drawn under a lock that waits for writers: a number drawn earlier and committed later would hide behind it.
-- A view is what it and the views and functions below it say. With a search_path of our own every name in it is written out, whoever asks.
create function catchword.view_digest(p_view text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with recursive below (relation) as (
    select to_regclass(p_view)::oid
    union
    select d.refobjid
      from below b
      join pg_catalog.pg_rewrite r on r.ev_class = b.relation
      join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
  ),
  parts (name, definition) as (
    select c.oid::regclass::text, pg_get_viewdef(c.oid)
      from below b join pg_catalog.pg_class c on c.oid = b.relation where c.relkind in ('v', 'm')
    union
    select p.oid::regprocedure::text, pg_get_functiondef(p.oid)
      from below b
      join pg_catalog.pg_rewrite r on r.ev_class = b.relation
      join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_proc'::regclass
      join pg_catalog.pg_proc p on p.oid = d.refobjid and p.prokind = 'f'
  )
  select md5(string_agg(name || ' ' || definition, ';' order by name collate "C", definition collate "C")) from parts
$$;
comment on function catchword.view_digest is 'a digest of a view and of the views and functions it is made of';

create function catchword.raise_floor(p_collection text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  source_name text;
  new_floor bigint;
begin
  select format('%I.%I', nspname, relname) into strict source_name
    from catchword.collection col join pg_catalog.pg_class c on c.oid = col.source join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where col.name = p_collection;
  execute format('lock table %s in share mode', source_name);
  update catchword.collection set floor = nextval('catchword.revision'), floor_view = catchword.view_digest(view)
   where name = p_collection returning floor into new_floor;
  return new_floor;
end $$;
comment on function catchword.raise_floor is 'makes every document of a collection stale; reindex --all then writes them anew';

create function catchword.attach(
  p_collection text, p_source regclass, p_key text, p_view text,
  p_revision text default 'catchword_revision', p_watch text[] default '{}', p_touches jsonb default '[]', p_delay integer default 60,
  p_scopes jsonb default '{}', p_period text default null
) returns text
language plpgsql as $$
declare
  statements text[];
  digest text;
  before catchword.collection;
  intact boolean;
  kept boolean;
  statement text;
  view_name text;
begin
  perform catchword.check_source(p_collection, p_source, p_key, p_revision, p_watch, p_touches);
  -- names are kept with their schema and quoted by Postgres: whoever reads them later may have another search_path
  p_touches := (select coalesce(jsonb_agg(jsonb_set(t, '{table}', to_jsonb(format('%I.%I', nspname, relname))) order by n), '[]')
    from jsonb_array_elements(p_touches) with ordinality as e (t, n)
    join pg_catalog.pg_class c on c.oid = to_regclass(t ->> 'table') join pg_catalog.pg_namespace s on s.oid = c.relnamespace);
  select format('%I.%I', nspname, relname) into view_name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(p_view);
  if not found then
    perform catchword.refuse(format('the view %s does not exist', p_view),
      format('in a migration of your own: alter table %1$s add column if not exists %2$I bigint; comment on column %1$s.%2$I is ''catchword: revision''; create view %3$s as select %4$I as key, %2$I as revision, json_build_object(…) as body from %1$s', p_source, p_revision, p_view, p_key));
  end if;
  -- two at once: the second waits here and then finds nothing to do
  perform pg_advisory_xact_lock(hashtextextended('catchword.attach', 0));
  statements := array(select * from catchword.attach_statements(p_collection, p_source, p_key, p_revision, p_watch, p_touches, p_delay));
  -- the column's own statements are not part of the digest: they are only there the first time
  digest := md5(array_to_string(array(select s from unnest(statements) s where s not like 'alter table%' and s not like 'comment on%'), ';'));
  select * into before from catchword.collection where name = p_collection;
  intact := before.name is not null and before.source = p_source and not exists (select from catchword.broken_triggers(p_collection));

  if intact and before.definition = digest and before.view = view_name then
    update catchword.collection set scopes = p_scopes, period = p_period where name = p_collection;
    return 'unchanged';
  end if;

  execute format('lock table %s in share row exclusive mode', p_source);
  if before.name is not null then
    perform catchword.drop_triggers(p_collection);
  end if;
  foreach statement in array statements loop
    execute statement;
  end loop;
  -- triggers that were off, another table, view, key or list of columns, a related table more: nobody knows what changed meanwhile, so
  -- everything is stale
  kept := intact and before.view = view_name and before.key_column = p_key and before.revision_column = p_revision and before.watch = p_watch and before.touches @> p_touches;
  -- until the first document is written, none was built with another definition of the view than this one
  insert into catchword.collection as c (name, source, key_column, key_type, revision_column, view, floor, floor_view, filled_view, watch, touches, scopes, period, delay_seconds, definition)
  select p_collection, p_source, p_key, format_type(atttypid, null), p_revision, view_name, nextval('catchword.revision'), catchword.view_digest(view_name), catchword.view_digest(view_name), p_watch, p_touches, p_scopes, p_period, p_delay, digest
    from pg_catalog.pg_attribute where attrelid = p_source and attname = p_key
  on conflict (name) do update
    set source = excluded.source, key_column = excluded.key_column, key_type = excluded.key_type, revision_column = excluded.revision_column,
        view = excluded.view, watch = excluded.watch, touches = excluded.touches, scopes = excluded.scopes, period = excluded.period,
        delay_seconds = excluded.delay_seconds, definition = excluded.definition, attached_at = now(),
        floor = case when kept then c.floor else excluded.floor end,
        floor_view = case when kept then c.floor_view else excluded.floor_view end;
  insert into catchword.journal (what, collection, detail) values ('attach', p_collection, p_source::text);
  return case when before.name is null then 'attached' when kept then 'changed' when intact then 'attached anew' else 'repaired' end;
end $$;
comment on function catchword.attach is 'makes a table a collection; repeating it changes nothing';

create function catchword.drop_triggers(p_collection text) returns void
language plpgsql as $$
declare
  t record;
begin
  -- by function, so that triggers of touches that are no longer configured go too
  for t in
    select g.tgname, g.tgrelid::regclass as relation
      from pg_catalog.pg_trigger g join pg_catalog.pg_proc p on p.oid = g.tgfoid
     where p.pronamespace = 'catchword'::regnamespace and not g.tgisinternal
       and (p.proname in (p_collection || '_revision', p_collection || '_inserted', p_collection || '_updated', p_collection || '_deleted', p_collection || '_truncated')
            or p.proname ~ ('^' || p_collection || '_touch_[0-9]+$'))
  loop
    execute format('drop trigger %I on %s', t.tgname, t.relation);
  end loop;
  for t in
    select p.oid::regprocedure as function from pg_catalog.pg_proc p
     where p.pronamespace = 'catchword'::regnamespace and p.prorettype = 'trigger'::regtype
       and (p.proname in (p_collection || '_revision', p_collection || '_inserted', p_collection || '_updated', p_collection || '_deleted', p_collection || '_truncated')
            or p.proname ~ ('^' || p_collection || '_touch_[0-9]+$'))
  loop
    execute format('drop function %s', t.function);
  end loop;
end $$;
comment on function catchword.drop_triggers is 'takes the triggers of a collection away';

create function catchword.detach(p_collection text) returns text
language plpgsql as $$
declare
  col catchword.collection;
begin
  select * into col from catchword.collection where name = p_collection;
  if not found then
    return 'not attached';
  end if;
  perform catchword.drop_triggers(p_collection);
  delete from catchword.job where collection = p_collection;
  delete from catchword.dead_job where collection = p_collection;
  delete from catchword.tombstone where collection = p_collection;
  delete from catchword.pause where collection = p_collection;
  delete from catchword.collection where name = p_collection;
  insert into catchword.journal (what, collection, detail) values ('detach', p_collection, col.source::text);
  -- not to_regclass: since 16 it takes a number for a name, and the name of a dropped table is its number
  if not exists (select from pg_catalog.pg_class where oid = col.source) then
    return 'detached; its table was gone';
  end if;
  begin
    execute format('alter table %s drop column %I', col.source, col.revision_column);
    return 'detached';
  exception when dependent_objects_still_exist then
    return format('detached; %s.%I stays, because a view uses it', col.source, col.revision_column);
  end;
end $$;
comment on function catchword.detach is 'undoes attach: triggers, jobs, dead letters, records and, if nothing uses it, the column';
