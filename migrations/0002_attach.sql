-- Attaching a table: the column, the triggers and the floor that make it a collection.
-- `attach_statements` writes the SQL as text, so that `catchword migrate --dry-run` can print just what `attach` would run.

-- A refusal has its own SQLSTATE, so that a caller can tell it from an accident. The hint says what to do.
create function catchword.refuse(p_message text, p_hint text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = 'CW001', message = p_message, hint = p_hint;
end $$;
comment on function catchword.refuse is 'raises an error with a SQLSTATE of our own and a hint';

create function catchword.source_name(p_collection catchword.collection) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = p_collection.source
$$;
comment on function catchword.source_name is 'the quoted name of a collection''s table, with its schema';

-- Every function of ours has a path of its own, so that nothing which somebody planted in a schema of the caller's path runs in it. The
-- names of your tables and views are looked up by the caller's path, and this is the one place that does it. A session of catchword keeps
-- that path in `catchword.path` (src/session.sql); the default is read before the function's own path is set.
create function catchword.named(p_name text, p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))) returns regclass
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  -- until the end of this function
  perform set_config('search_path', p_path, true);
  return pg_catalog.to_regclass(p_name);
end $$;
comment on function catchword.named is 'the table or view that a name means under a search path; null: none';

create function catchword.check_source(
  p_collection text, p_source regclass, p_key text, p_revision text, p_watch text[], p_touches jsonb,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
  -- the triggers' functions are written between these
  select w into found_name from (select unnest(p_watch || array[p_key, p_revision]) union all
    select e.value from jsonb_array_elements(p_touches) t, lateral (select value from jsonb_each_text(t - 'watch') union all select jsonb_array_elements_text(t -> 'watch')) as e (value)) as n (w)
   where position('$f$' in w) > 0 limit 1;
  if found then
    perform catchword.refuse(format('the column %I has $f$ in its name', found_name), 'rename it');
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
      'such tables cannot be attached yet. Leave row security on: without it every role would see every row');
  elsif exists (select from catchword.collection where source = p_source and name <> p_collection) then
    select name into found_name from catchword.collection where source = p_source and name <> p_collection;
    perform catchword.refuse(format('%s is attached already, as collection %s', source_name, found_name),
      format('a table is in one collection for now; to give that one up: catchword detach %s', found_name));
  end if;

  select * into att from pg_catalog.pg_attribute where attrelid = p_source and attname = p_key and attnum > 0 and not attisdropped;
  if not found then
    perform catchword.refuse(format('%s has no column %I', source_name, p_key), 'correct key = "…"');
  elsif format_type(att.atttypid, null) not in ('uuid', 'bigint', 'integer', 'text') then
    perform catchword.refuse(format('the key %s.%I is of type %s', source_name, p_key, format_type(att.atttypid, att.atttypmod)),
      case when att.atttypid = 'character varying'::regtype
           then format('a key is of type uuid, bigint, integer or text; run "alter table %s alter column %I type text", which rewrites nothing (views that use the column have to be made again)', source_name, p_key)
           else 'a key is of type uuid, bigint, integer or text' end);
  elsif not att.attnotnull then
    perform catchword.refuse(format('the key %s.%I may be null', source_name, p_key),
      format('run "alter table %1$s alter column %2$I set not null"; on a large table first "alter table %1$s add check (%2$I is not null) not valid" and validate it, so that nobody waits while it is read', source_name, p_key));
  elsif exists (select from pg_catalog.pg_collation where oid = att.attcollation and not collisdeterministic) then
    perform catchword.refuse(format('the key %s.%I has a nondeterministic collation: different texts would be one key', source_name, p_key),
      'give the key a deterministic collation');
  elsif not exists (select from pg_catalog.pg_index i where i.indrelid = p_source and i.indisunique and i.indimmediate
                      and i.indisvalid and i.indpred is null and i.indnkeyatts = 1 and i.indkey[0] = att.attnum) then
    if exists (select from pg_catalog.pg_index i where i.indrelid = p_source and i.indisunique and i.indnkeyatts > 1
                  and att.attnum = any((i.indkey::smallint[])[0:i.indnkeyatts - 1])) then
      perform catchword.refuse(format('the key %s.%I is unique together with other columns only', source_name, p_key),
        'a key of several columns cannot be attached yet; name a column as key that is unique alone, if the table has one');
    end if;
    perform catchword.refuse(format('the key %s.%I is not unique', source_name, p_key),
      format('name a column that is; or, if no two rows may ever have the same value, run "create unique index concurrently on %s (%I)", not deferrable and for all rows', source_name, p_key));
  end if;

  select * into att from pg_catalog.pg_attribute where attrelid = p_source and attname = p_revision and attnum > 0 and not attisdropped;
  if found then
    if coalesce(col_description(p_source, att.attnum), '') not like 'catchword%' then
      perform catchword.refuse(format('%s has a column %I that catchword did not make', source_name, p_revision),
        format('choose another name with revision = "…"; if it is meant for catchword, which then overwrites what is in it, say so: comment on column %s.%I is ''catchword: revision''', source_name, p_revision));
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
    if catchword.named(touch ->> 'table', p_path) is null then
      perform catchword.refuse(format('the related table %s does not exist', touch ->> 'table'), 'correct touches = [{ table = "…" }]');
    elsif catchword.named(touch ->> 'table', p_path) = p_source then
      perform catchword.refuse(format('%s cannot touch itself: rows that refer to each other would be touched for ever', source_name), 'name another table in touches');
    elsif not exists (select from pg_catalog.pg_class where oid = catchword.named(touch ->> 'table', p_path) and relkind = 'r' and not relispartition) then
      perform catchword.refuse(format('the related table %s is not a plain table', touch ->> 'table'), 'name a plain table in touches');
    elsif exists (select from pg_catalog.pg_inherits where catchword.named(touch ->> 'table', p_path) in (inhrelid, inhparent)) then
      perform catchword.refuse(format('the related table %s inherits or is inherited from', touch ->> 'table'), 'name a plain table in touches');
    elsif not exists (select from pg_catalog.pg_attribute where attrelid = catchword.named(touch ->> 'table', p_path) and attname = touch ->> 'column' and attnum > 0 and not attisdropped) then
      perform catchword.refuse(format('the related table %s has no column %I', touch ->> 'table', touch ->> 'column'), 'correct touches = [{ column = "…" }]');
    elsif not exists (select from pg_catalog.pg_attribute where attrelid = p_source and attname = touch ->> 'row_column' and attnum > 0 and not attisdropped) then
      perform catchword.refuse(format('%s has no column %I', source_name, touch ->> 'row_column'), 'correct touches = [{ row_column = "…" }]');
    elsif touch ? 'watch' and not exists (select from pg_catalog.pg_index where indrelid = catchword.named(touch ->> 'table', p_path) and indisprimary and indisvalid and indimmediate) then
      perform catchword.refuse(format('the related table %s has no primary key, and without one the old and the new row cannot be told to be the same', touch ->> 'table'),
        'give it a primary key that is not deferrable, or leave watch out: then each of its updates touches');
    end if;
    select w into found_name from jsonb_array_elements_text(touch -> 'watch') w
     where not exists (select from pg_catalog.pg_attribute where attrelid = catchword.named(touch ->> 'table', p_path) and attname = w and attnum > 0 and not attisdropped) limit 1;
    if found then
      perform catchword.refuse(format('the related table %s has no column %I', touch ->> 'table', found_name), 'correct touches = [{ watch = ["…"] }]');
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

create function catchword.foreign_key(p_source regclass, p_touch jsonb) returns name
language sql stable set search_path = pg_catalog, pg_temp as $$
  select k.conname from pg_constraint k
    join pg_attribute mine on mine.attrelid = p_source and mine.attname = p_touch ->> 'row_column' and k.conkey = array[mine.attnum]
    join pg_attribute theirs on theirs.attrelid = k.confrelid and theirs.attname = p_touch ->> 'column' and k.confkey = array[theirs.attnum]
   where k.contype = 'f' and k.convalidated and k.conrelid = p_source and k.confrelid = to_regclass(p_touch ->> 'table')
   order by k.conname limit 1
$$;
comment on function catchword.foreign_key is 'the foreign key that holds the rows of a table to the rows of a related one; null: there is none';

-- The triggers of one related table: a job for each changed value, and nothing else; the worker finds the rows after the commit.
-- Values travel as text. The settings are the same for every writer, and the worker's: 01/02/2026 is one day.
-- The equality of a type's own order, written out: of an extension's type it is in a schema that our path does not have, and without it
-- a citext would be compared as a text.
create function catchword.equality(p_type oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(
    (select format('operator(%I.%s)', n.nspname, o.oprname)
       from pg_opclass c
       join pg_am m on m.oid = c.opcmethod and m.amname = 'btree'
       join pg_amop a on a.amopfamily = c.opcfamily and a.amopstrategy = 3 and a.amoplefttype = c.opcintype and a.amoprighttype = c.opcintype
       join pg_operator o on o.oid = a.amopopr
       join pg_namespace n on n.oid = o.oprnamespace
      where c.opcdefault and c.opcintype = coalesce((select nullif(t.typbasetype, 0) from pg_type t where t.oid = p_type), p_type)),
    'operator(pg_catalog.=)')
$$;
comment on function catchword.equality is 'the operator by which two values of a type are equal, with its schema';

-- Always in quotes: words of PL/pgSQL are no words of SQL, and %I leaves them bare.
create function catchword.quoted(p_name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select '"' || replace(p_name, '"', '""') || '"'
$$;
comment on function catchword.quoted is 'a name in double quotes';

create function catchword.touch_statements(p_collection text, p_source regclass, p_related regclass, p_touch jsonb, p_n integer, p_head text, p_tag text, p_trace text) returns setof text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  related constant text := (select format('%I.%I', nspname, relname) from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.oid = p_related);
  related_column constant text := p_touch ->> 'column';
  f constant text := format('catchword.%I', p_collection || '_touch_' || p_n);
  trigger_name constant text := 'catchword_' || p_collection || '_' || p_n;
  canonical constant text := ' set datestyle = ''ISO, YMD'' set intervalstyle = ''postgres'' set timezone = ''UTC'' set bytea_output = ''hex'' set extra_float_digits = 3 set lc_monetary = ''C''';
  leave constant text := format('insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select ''touch'', %L, %s || v, 1, %s, %s from (%%s) as changed (v) where v is not null;', p_collection, replace(quote_literal((p_touch ->> 'row_column') || '='), '%', '%%'), p_tag, p_trace);
  -- under a foreign key nobody can have referred to a row before it was there
  insert_matters constant boolean := catchword.foreign_key(p_source, p_touch) is null;
  every_update constant text := format(leave, format('select r.%1$s::text from old_rows r union select r.%1$s::text from new_rows r', catchword.quoted(related_column)));
  updated text := every_update;
begin
  if p_touch ? 'watch' then
    -- old and new rows meet by their primary key; one whose watched columns have the same bytes touches nothing
    select format(leave, format('select v from (select o.%1$s::text, n.%1$s::text from old_rows o full join new_rows n on %2$s
       where record_image_ne(row(%3$s), row(%4$s))) as pair (before, after), lateral (values (before), (after)) as sides (v) group by v',
        catchword.quoted(related_column),
        (select string_agg(format('n.%1$s %2$s o.%1$s', catchword.quoted(a.attname), catchword.equality(a.atttypid)), ' and ' order by a.attnum)
           from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey) where i.indrelid = p_related and i.indisprimary),
        string_agg('o.' || catchword.quoted(w), ', ' order by w), string_agg('n.' || catchword.quoted(w), ', ' order by w)))
      into updated
      from (select jsonb_array_elements_text(p_touch -> 'watch') union select related_column) as t (w);
    -- what cannot be compared counts as changed: a column that was renamed or retyped must not fail the write
    updated := format('begin
      %s
    exception when others then
      %s
    end;', updated, every_update);
  end if;
  return next format('create or replace function %s()', f) || p_head || canonical || format(' as $f$
#variable_conflict use_variable
begin
  if tg_op = ''TRUNCATE'' then
    if current_setting(''transaction_isolation'') not in (''read committed'', ''read uncommitted'') then
      raise exception using errcode = ''CW001'', message = ''truncate of a table that catchword watches needs read committed'', hint = ''use delete, or begin the transaction with: isolation level read committed'';
    end if;
    %1$s
  elsif tg_op = ''INSERT'' then
    %2$s
  elsif tg_op = ''DELETE'' then
    %3$s
  else
    %4$s
  end if;
  return null;
end $f$',
    format(leave, format('select r.%s::text from only %s r group by 1', catchword.quoted(related_column), related)),
    case when insert_matters then format(leave, format('select r.%s::text from new_rows r group by 1', catchword.quoted(related_column))) else 'null;' end,
    format(leave, format('select r.%s::text from old_rows r group by 1', catchword.quoted(related_column))),
    updated);
  return next format('create or replace trigger %I after insert on %s referencing new table as new_rows for each statement execute function %s()', trigger_name || '_insert', related, f);
  return next format('create or replace trigger %I after update on %s referencing old table as old_rows new table as new_rows for each statement execute function %s()', trigger_name || '_update', related, f);
  return next format('create or replace trigger %I after delete on %s referencing old table as old_rows for each statement execute function %s()', trigger_name || '_delete', related, f);
  return next format('create or replace trigger %I before truncate on %s for each statement execute function %s()', trigger_name || '_truncate', related, f);
end $$;
comment on function catchword.touch_statements is 'the SQL for one related table, as text';

create function catchword.attach_statements(
  p_collection text, p_source regclass, p_key text, p_revision text, p_watch text[], p_touches jsonb, p_delay integer,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns setof text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  source_name constant text := (select format('%I.%I', nspname, relname) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = p_source);
  -- The application's session has its own search_path, role and rights, and none of them matters here: what it writes to, it may always.
  head constant text := ' returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp';
  -- A setting can never fail a write: it is taken only where it looks right. After a transaction-local set_config a setting is ''.
  due  constant text := format($q$now() + case when current_setting('catchword.delay', true) ~ '^[0-9]{1,4}$' and current_setting('catchword.delay', true)::integer <= 3600 then make_interval(secs => current_setting('catchword.delay', true)::integer) else interval '%s seconds' end$q$, p_delay);
  tag  constant text := $q$coalesce(nullif(left(current_setting('catchword.tag', true), 100), ''), lower(tg_op))$q$;
  trace constant text := $q$nullif(left(current_setting('catchword.traceparent', true), 55), '')$q$;
  read_committed constant text := $q$current_setting('transaction_isolation') in ('read committed', 'read uncommitted')$q$;
  changed text := '';
  schedule text;
  record_gone text;
  touch jsonb;
  n integer := 0;
  f text;
begin
  if not exists (select from pg_catalog.pg_attribute where attrelid = p_source and attname = p_revision and attnum > 0 and not attisdropped) then
    return next format('alter table %s add column %I bigint', source_name, p_revision);
    return next format('comment on column %s.%I is %L', source_name, p_revision, 'catchword: the revision of this row');
  end if;

  -- every write of a row draws a number. With `watch` an update draws one only if the bytes of a watched column changed: what is equal may
  -- look different (1.0 and 1.00, draft and DRAFT in some collations), and json, xml and point know no "equal"
  f := format('catchword.%I', p_collection || '_revision');
  if cardinality(p_watch) = 0 then
    return next format('create or replace function %s()', f) || head || format(' as $f$
begin
  new.%s := nextval(''catchword.revision'');
  return new;
end $f$', catchword.quoted(p_revision));
  else
    -- what cannot be compared counts as changed: a column that was renamed or retyped must not fail the write
    return next format('create or replace function %s()', f) || head || (select format(' as $f$
declare
  changed boolean := true;
begin
  if tg_op = ''UPDATE'' then
    begin
      changed := record_image_ne(row(%2$s), row(%3$s));
    exception when others then
      changed := true;
    end;
  end if;
  if changed then
    new.%1$s := nextval(''catchword.revision'');
  end if;
  return new;
end $f$', catchword.quoted(p_revision), string_agg('new.' || catchword.quoted(w), ', ' order by w), string_agg('old.' || catchword.quoted(w), ', ' order by w))
      from (select unnest(p_watch) union select p_key union select p_revision) as t (w));
    -- only a drawn number is new in the statement; joined by hash, because the plan is kept from a statement of another size
    changed := format(' and n.%1$I is not null and not exists (select from old_rows o where o.%1$I = n.%1$I)', p_revision);
  end if;
  return next format('create or replace trigger zzz_catchword_revision before insert or update on %s for each row execute function %s()', source_name, f);

  -- jobs of a statement: live, in the one statement that is enough as a rule; or spaced like a reindex where there are more than 1,000.
  -- `offset 0` asks for the base once and not once per row, which took 40 s for 10,000 rows. In a serializable transaction the queue is
  -- not read at all: what is read there can fail the commit
  schedule := $q$
  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
  select %2$L, n.%3$I::text, %4$s, 1, %5$s, %6$s from %1$s n where not exists (select from %1$s offset 1000)%7$s;
  if not found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select %2$L, n.%3$I::text, b.base + row_number() over () * interval '1 microsecond', %4$s, 100, %5$s, %6$s
      from %1$s n, (select case when %8$s then catchword.bulk_base(%2$L, 100) else now() end offset 0) as b (base)
     where exists (select from %1$s offset 1000)%7$s;
  end if;$q$;

  -- the numbers of keys that are gone. Older records of a few keys go with it where that can neither fail nor wait: in an older snapshot
  -- somebody may have come first, and one that is locked is passed over. The sweep forgets the others
  record_gone := $q$
  with forgotten as (
    delete from catchword.record where ctid = any(array(
      select r.ctid from catchword.record r
       where r.collection = %1$L and r.key = any(array(select o.%2$I::text from %3$s o)) and not exists (select from %3$s offset 1000) and %4$s
         for update skip locked)))
  insert into catchword.record (collection, key, revision)
  select %1$L, o.%2$I::text, nextval('catchword.revision') + 1 from %3$s o where octet_length(o.%2$I::text) <= 512;$q$;

  -- an insert leaves its jobs, and that is all: if its number lies below that of a delete it waited for, its version is above it all the same
  f := format('catchword.%I', p_collection || '_inserted');
  return next format('create or replace function %s()', f) || head || ' as $f$
#variable_conflict use_variable
begin' || format(schedule, 'new_rows', p_collection, p_key, due, tag, trace, '', read_committed) || '
  return null;
end $f$';
  return next format('create or replace trigger catchword_inserted after insert on %s referencing new table as new_rows for each statement execute function %s()', source_name, f);

  -- update: its rows; and where keys changed, the old ones are gone. Found by statement and not by row, so that over a thousand old keys
  -- stand behind live writes too; by `except`, which is quick whatever size the plan is from
  f := format('catchword.%I', p_collection || '_updated');
  return next format('create or replace function %s()', f) || head
    || case when changed = '' then '' else ' set enable_nestloop = off' end || format(' as $f$
#variable_conflict use_variable
declare
  left_keys constant text[] := array(select k::text from (select o.%1$I from old_rows o except select n.%1$I from new_rows n) as gone (k));
begin', p_key) || format(schedule, 'new_rows', p_collection, p_key, due, tag, trace, changed, read_committed) || '
  if cardinality(left_keys) > 0 then' || format(record_gone, p_collection, 'o', 'unnest(left_keys)', read_committed)
    || format(schedule, 'unnest(left_keys)', p_collection, 'n', due, tag, trace, '', read_committed) || '
  end if;
  return null;
end $f$';
  return next format('create or replace trigger catchword_updated after update on %s referencing old table as old_rows new table as new_rows for each statement execute function %s()', source_name, f);

  f := format('catchword.%I', p_collection || '_deleted');
  return next format('create or replace function %s()', f) || head || ' as $f$
#variable_conflict use_variable
begin' || format(record_gone, p_collection, p_key, 'old_rows', read_committed)
    || format(schedule, 'old_rows', p_collection, p_key, due, tag, trace, '', read_committed) || '
  return null;
end $f$';
  return next format('create or replace trigger catchword_deleted after delete on %s referencing old table as old_rows for each statement execute function %s()', source_name, f);

  f := format('catchword.%I', p_collection || '_truncated');
  return next format('create or replace function %s()', f) || head || format(' as $f$
#variable_conflict use_variable
begin
  if not (%s) then
    -- the snapshot is older than the lock: rows committed since would be emptied without a trace
    raise exception using errcode = ''CW001'', message = ''truncate of a table attached to catchword needs read committed'', hint = ''use delete, or begin the transaction with: isolation level read committed'';
  end if;', read_committed) || format(record_gone, p_collection, p_key, 'only ' || source_name, read_committed)
    || format(schedule, 'only ' || source_name, p_collection, p_key, due, tag, trace, '', read_committed) || '
  return null;
end $f$';
  return next format('create or replace trigger catchword_truncated before truncate on %s for each statement execute function %s()', source_name, f);

  for touch in select * from jsonb_array_elements(p_touches) loop
    n := n + 1;
    return query select * from catchword.touch_statements(p_collection, p_source, catchword.named(touch ->> 'table', p_path), touch, n, head, tag, trace);
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
      or t.tgfoid is distinct from to_regprocedure(w.function || '()')::oid or t.tgtype <> w.type or t.tgqual is not null or cardinality(t.tgattr::smallint[]) > 0
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
  -- until then every update of it counts
  select format('the watched column %s.%I is missing', c.source, w.name)
    from catchword.collection c join pg_class r on r.oid = c.source cross join unnest(c.watch) as w (name)
   where c.name = p_collection and not exists (select from pg_attribute a where a.attrelid = c.source and a.attname = w.name and a.attnum > 0 and not a.attisdropped)
  union all
  select format('the column %s.%I that touches name is missing', n.relation, n.name)
    from catchword.collection c
   cross join jsonb_array_elements(c.touches) as t (touch)
   cross join lateral (select to_regclass(t.touch ->> 'table'), t.touch ->> 'column' union all select c.source, t.touch ->> 'row_column'
                       union all select to_regclass(t.touch ->> 'table'), jsonb_array_elements_text(t.touch -> 'watch')) as n (relation, name)
   where c.name = p_collection and exists (select from pg_class r where r.oid = n.relation)
     and not exists (select from pg_attribute a where a.attrelid = n.relation and a.attname = n.name and a.attnum > 0 and not a.attisdropped)
  union all
  -- what became of a table after it was attached: statements that name another one write into it, and its triggers do not fire
  select case when r.relispartition then format('%1$s is a partition now: what is written through %2$s leaves no jobs; run "alter table %2$s detach partition %1$s"', r.oid::regclass,
                                                (select i.inhparent::regclass from pg_inherits i where i.inhrelid = r.oid))
              when exists (select from pg_inherits i where i.inhrelid = r.oid)
              then format('%1$s inherits from %2$s now: what is written through %2$s leaves no jobs; run "alter table %1$s no inherit %2$s"', r.oid::regclass,
                          (select i.inhparent::regclass from pg_inherits i where i.inhrelid = r.oid order by 1 limit 1))
              when exists (select from pg_inherits i where i.inhparent = r.oid)
              then format('%2$s inherits from %1$s now: its rows are seen in %1$s, and leave no jobs; run "alter table %2$s no inherit %1$s"', r.oid::regclass,
                          (select i.inhrelid::regclass from pg_inherits i where i.inhparent = r.oid order by 1 limit 1))
              else format('%1$s is unlogged now: a crash empties it without a trace; run "alter table %1$s set logged"', r.oid::regclass) end
    from (select c.source::oid from catchword.collection c where c.name = p_collection
          union
          select to_regclass(touch.value ->> 'table') from catchword.collection c, jsonb_array_elements(c.touches) as touch (value) where c.name = p_collection) as w (relation)
    join pg_class r on r.oid = w.relation
   where r.relispartition or r.relpersistence <> 'p'
      or exists (select from pg_inherits i where i.inhrelid = r.oid) or exists (select from pg_inherits i where i.inhparent = r.oid)
  union all
  -- while there was a foreign key, a new row of the related table could concern nobody, and its inserts are passed over
  select format('the foreign key from %s.%I to %s is gone, and new rows of %3$s are passed over', c.source, touch.value ->> 'row_column', touch.value ->> 'table')
    from catchword.collection c, jsonb_array_elements(c.touches) as touch (value)
   where c.name = p_collection and touch.value ? 'foreign_key'
     and case when exists (select from pg_constraint k where k.conrelid = c.source and k.conname = touch.value ->> 'foreign_key' and k.contype = 'f' and k.convalidated) then false
              -- it may only have another name
              else catchword.foreign_key(c.source, touch.value) is null end
  union all
  select format('%s has row security', c.source) from catchword.collection c join pg_class r on r.oid = c.source where c.name = p_collection and r.relrowsecurity
  union all
  -- the triggers' functions act with the rights of their owner
  select format('the role %s, whose functions the triggers run, may not %s %s, and writes fail; run first: grant %2$s on %3$s to %1$s', quote_ident(pg_get_userbyid(p.proowner)), needed.privilege, needed.object)
    from catchword.collection c
    join pg_proc p on p.oid = to_regprocedure(format('catchword.%I()', c.name || '_deleted'))
    cross join (values ('catchword.job', 'insert'), ('catchword.record', 'insert'), ('catchword.record', 'delete'), ('catchword.record', 'select')) as needed (object, privilege)
   where c.name = p_collection and not has_table_privilege(p.proowner, to_regclass(needed.object)::oid, needed.privilege)
  union all
  select format('the role %s, whose functions the triggers run, may not draw from catchword.revision, and writes fail; run first: grant usage on sequence catchword.revision to %1$s', quote_ident(pg_get_userbyid(p.proowner)))
    from catchword.collection c
    join pg_proc p on p.oid = to_regprocedure(format('catchword.%I()', c.name || '_revision'))
   where c.name = p_collection and not (has_sequence_privilege(p.proowner, to_regclass('catchword.revision')::oid, 'usage') and has_schema_privilege(p.proowner, 'catchword', 'usage'))
  union all
  select format('%s is not attached', p_collection) where not exists (select from catchword.collection where name = p_collection);
$$;
comment on function catchword.broken_triggers is 'what is wrong with the triggers, the columns and the view of a collection; no row: nothing';

-- What a view is made of, as far as the catalogs know: views below it, the tables and columns that they read, functions, operators, types.
-- Things of the system (oids below 16384) do not change and are not among them. Functions whose body is text refer to nothing that Postgres
-- records: what they name is looked for by name, so one too many may be found, and never one too few but by dynamic SQL.
create function catchword.below(p_view text) returns table (class oid, object oid, part integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with recursive below (class, object, part) as (
    select 'pg_class'::regclass::oid, to_regclass(p_view)::oid, 0
    union
    select n.class, n.object, n.part
      from below b
     cross join lateral (
       -- a view reads what its rule refers to; a table's own rules are about writing
       select d.refclassid, d.refobjid, d.refobjsubid
         from pg_class c
         join pg_rewrite r on r.ev_class = c.oid and r.ev_type = '1'
         join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
        where b.class = 'pg_class'::regclass and b.part = 0 and c.oid = b.object and c.relkind = 'v'
       union all
       -- a row as a whole reads every column: it shows only by its type
       select d.refclassid, a.attrelid, a.attnum
         from pg_class c
         join pg_rewrite r on r.ev_class = c.oid and r.ev_type = '1'
         join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass
         join pg_class t on t.oid = d.refobjid and position(':varattno 0 :vartype ' || t.reltype || ' ' in r.ev_action::text) > 0
         join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        where b.class = 'pg_class'::regclass and b.part = 0 and c.oid = b.object and c.relkind = 'v'
       union all
       -- a column of a view is the view
       select b.class, b.object, 0 where b.class = 'pg_class'::regclass and b.part <> 0
       union all
       -- functions and operators refer to what they say
       select d.refclassid, d.refobjid, d.refobjsubid
         from pg_depend d
        where b.class in ('pg_proc'::regclass, 'pg_operator'::regclass) and d.classid = b.class and d.objid = b.object and d.deptype = 'n'
       union all
       -- the body of a function may be text: whatever it names and is a function of somebody's own
       select 'pg_proc'::regclass, named.oid, 0
         from pg_proc p
         join pg_language l on l.oid = p.prolang and l.lanname not in ('c', 'internal')
        cross join lateral (select distinct w.word from regexp_split_to_table(p.prosrc, '[^[:alnum:]_$]+') as s (word), lateral (values (s.word), (lower(s.word))) as w (word)) as said
         join pg_proc named on named.proname = said.word and named.oid >= 16384 and named.oid <> p.oid and named.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
        where b.class = 'pg_proc'::regclass and p.oid = b.object and p.prosqlbody is null
       union all
       -- a column: its type, and what it is generated from
       select 'pg_type'::regclass, a.atttypid, 0
         from pg_attribute a
        where b.class = 'pg_class'::regclass and b.part > 0 and a.attrelid = b.object and a.attnum = b.part and a.atttypid >= 16384
       union all
       select d.refclassid, d.refobjid, d.refobjsubid
         from pg_attribute a
         join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
         join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = e.oid
        where b.class = 'pg_class'::regclass and b.part > 0 and a.attrelid = b.object and a.attnum = b.part and a.attgenerated <> ''
       union all
       -- a type: what it is made of
       select 'pg_type'::regclass, m.made_of, 0
         from pg_type t
        cross join lateral (values (t.typbasetype), (t.typelem), ((select r.rngsubtype from pg_range r where r.rngtypid = t.oid))) as m (made_of)
        where b.class = 'pg_type'::regclass and t.oid = b.object and m.made_of >= 16384
       union all
       select 'pg_type'::regclass, a.atttypid, 0
         from pg_type t
         join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped and a.atttypid >= 16384
        where b.class = 'pg_type'::regclass and t.oid = b.object and t.typtype = 'c'
     ) as n (class, object, part)
  )
  select class, object, part from below
$$;
comment on function catchword.below is 'everything that a view is made of: class, object and column as in pg_depend';

-- A view is what all of that says, as the catalogs store it: to write it out as SQL, Postgres would lock the tables, and somebody who holds
-- one of them would stop the tick for every collection. Labels of enums follow in plain
-- text: one more changes no document, another name for one does.
create function catchword.view_facts(p_view text, out digest text, out reads oid[], out columns text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with below as materialized (select class, object, part from catchword.below(p_view)),
  parts (definition) as (
    select c.oid::regclass || ' ' || (select string_agg(r.ev_action::text, ';' order by r.rulename) from pg_rewrite r where r.ev_class = c.oid)
      from below b join pg_class c on c.oid = b.object where b.class = 'pg_class'::regclass and b.part = 0 and c.relkind in ('v', 'm')
    union all
    select concat_ws(' ', p.oid::regprocedure, p.prolang, p.provolatile, p.prosecdef, p.proconfig, p.prosrc, p.prosqlbody::text)
      from below b join pg_proc p on p.oid = b.object where b.class = 'pg_proc'::regclass and p.prokind <> 'a'
    union all
    select p.oid::regprocedure || ' ' || array_to_string(array[a.aggtransfn::text, a.aggfinalfn::text, a.agginitval], ',', '-')
      from below b join pg_proc p on p.oid = b.object join pg_aggregate a on a.aggfnoid = p.oid where b.class = 'pg_proc'::regclass
    union all
    select concat_ws(' ', c.oid::regclass || '.' || a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation, a.attgenerated, e.adbin::text)
      from below b
      join pg_class c on c.oid = b.object and c.relkind not in ('v', 'm')
      join pg_attribute a on a.attrelid = c.oid and a.attnum = b.part and b.part > 0
      left join pg_attrdef e on a.attgenerated <> '' and e.adrelid = c.oid and e.adnum = a.attnum
     where b.class = 'pg_class'::regclass
    union all
    select format_type(t.oid, null) || ' ' || string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ',' order by a.attnum)
      from below b
      join pg_type t on t.oid = b.object and t.typtype = 'c'
      join pg_class c on c.oid = t.typrelid and c.relkind = 'c'
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where b.class = 'pg_type'::regclass group by t.oid
  )
  select md5(string_agg(definition, ';' order by definition collate "C"))
         || coalesce(' ' || (select jsonb_agg(format('%s %s %s', format_type(e.enumtypid, null), e.enumsortorder, e.enumlabel) order by e.enumtypid, e.enumsortorder)::text
                               from below b join pg_enum e on e.enumtypid = b.object where b.class = 'pg_type'::regclass), ''),
         array(select distinct c.oid from below b join pg_class c on c.oid = b.object and c.relkind in ('r', 'p', 'f', 'm') and c.oid >= 16384
                where b.class = 'pg_class'::regclass),
         array(select distinct b.object || '.' || b.part from below b join pg_class c on c.oid = b.object and c.relkind in ('r', 'p', 'f')
                where b.class = 'pg_class'::regclass and b.part > 0)
    from parts
$$;
comment on function catchword.view_facts is 'a digest of all that makes a view''s documents what they are; the tables that it reads; their columns as table.number';

create function catchword.view_digest(p_view text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select digest from catchword.view_facts(p_view)
$$;
comment on function catchword.view_digest is 'a digest of a view and of all that it is made of';

create function catchword.same_view(p_before text, p_now text) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select coalesce(split_part(p_before, ' ', 1) = split_part(p_now, ' ', 1)
                  and coalesce(nullif(substr(p_now, 34), ''), '[]')::jsonb @> coalesce(nullif(substr(p_before, 34), ''), '[]')::jsonb, false)
$$;
comment on function catchword.same_view is 'are documents that were built under the first digest the same under the second?';

-- The floor is drawn under a lock that waits for writers: a number drawn earlier and committed later would hide behind it.
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
  p_scopes jsonb default '{}', p_period text default null, p_unwatched text[] default '{}',
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  statements text[];
  waived text[];
  kept_touches jsonb;
  digest text;
  before catchword.collection;
  intact boolean;
  kept boolean;
  statement text;
  view_name text;
begin
  perform catchword.check_source(p_collection, p_source, p_key, p_revision, p_watch, p_touches, p_path);
  -- names are kept with their schema and quoted by Postgres: whoever reads them later may have another search_path
  p_touches := (select coalesce(jsonb_agg(jsonb_set(t, '{table}', to_jsonb(format('%I.%I', nspname, relname))) order by n), '[]')
    from jsonb_array_elements(p_touches) with ordinality as e (t, n)
    join pg_catalog.pg_class c on c.oid = catchword.named(t ->> 'table', p_path) join pg_catalog.pg_namespace s on s.oid = c.relnamespace);
  kept_touches := (select coalesce(jsonb_agg(t || jsonb_strip_nulls(jsonb_build_object('foreign_key', catchword.foreign_key(p_source, t))) order by n), '[]')
    from jsonb_array_elements(p_touches) with ordinality as e (t, n));
  if exists (select from unnest(p_unwatched) as u (name) where catchword.named(u.name, p_path) is null) then
    perform catchword.refuse(format('the table %s does not exist', (select u.name from unnest(p_unwatched) as u (name) where catchword.named(u.name, p_path) is null limit 1)), 'correct unwatched = […]');
  end if;
  waived := array(select format('%I.%I', nspname, relname)
    from unnest(p_unwatched) as u (name) join pg_catalog.pg_class c on c.oid = catchword.named(u.name, p_path) join pg_catalog.pg_namespace n on n.oid = c.relnamespace order by 1);
  select format('%I.%I', nspname, relname) into view_name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = catchword.named(p_view, p_path);
  if not found then
    perform catchword.refuse(format('the view %s does not exist', p_view),
      format('in a migration of your own: alter table %1$s add column if not exists %2$I bigint; comment on column %1$s.%2$I is ''catchword: revision''; create view %3$s as select %4$I as key, %2$I as revision, json_build_object(…) as body from %1$s', p_source, p_revision, p_view, p_key));
  end if;
  -- two at once: the second waits here and then finds nothing to do
  perform from catchword.turn where what = 'attach' for update;
  statements := array(select * from catchword.attach_statements(p_collection, p_source, p_key, p_revision, p_watch, p_touches, p_delay, p_path));
  -- the column's own statements are not part of the digest: they are only there the first time
  digest := md5(array_to_string(array(select s from unnest(statements) s where s not like 'alter table%' and s not like 'comment on%'), ';'));
  select * into before from catchword.collection where name = p_collection;
  intact := before.name is not null and before.source = p_source and not exists (select from catchword.broken_triggers(p_collection));

  if intact and before.definition = digest and before.view = view_name then
    -- a label that an enum has got since is kept too: from now on another name for it changes documents
    update catchword.collection set scopes = p_scopes, period = p_period, unwatched = waived, touches = kept_touches,
           filled_view = case when catchword.same_view(filled_view, catchword.view_digest(view_name)) then catchword.view_digest(view_name) else filled_view end
     where name = p_collection;
    return 'unchanged';
  end if;

  execute format('lock table %s in share row exclusive mode', p_source);
  if before.name is not null then
    perform catchword.drop_triggers(p_collection);
  end if;
  foreach statement in array statements loop
    execute statement;
  end loop;
  -- triggers that were off, another table, view, key or list of columns, a related table or a watched column of it more: nobody knows what
  -- changed meanwhile, so everything is stale
  kept := intact and before.view = view_name and before.key_column = p_key and before.revision_column = p_revision and before.watch = p_watch
    and not exists (
      select from jsonb_array_elements(p_touches) t
       where not exists (select from jsonb_array_elements(before.touches) b
                          where b - 'watch' - 'foreign_key' = t - 'watch' and (not b ? 'watch' or coalesce(b -> 'watch' @> (t -> 'watch'), false))));
  -- until the first document is written, none was built with another definition of the view than this one
  insert into catchword.collection as c (name, source, key_column, key_type, revision_column, view, floor, floor_view, filled_view, watch, touches, unwatched, scopes, period, delay_seconds, definition)
  select p_collection, p_source, p_key, format_type(atttypid, null), p_revision, view_name, nextval('catchword.revision'), catchword.view_digest(view_name), catchword.view_digest(view_name), p_watch, kept_touches, waived, p_scopes, p_period, p_delay, digest
    from pg_catalog.pg_attribute where attrelid = p_source and attname = p_key
  on conflict (name) do update
    set source = excluded.source, key_column = excluded.key_column, key_type = excluded.key_type, revision_column = excluded.revision_column,
        view = excluded.view, watch = excluded.watch, touches = excluded.touches, unwatched = excluded.unwatched, scopes = excluded.scopes, period = excluded.period,
        delay_seconds = excluded.delay_seconds, definition = excluded.definition, attached_at = now(),
        floor = case when kept then c.floor else excluded.floor end,
        floor_view = case when kept then c.floor_view else excluded.floor_view end;
  insert into catchword.journal (what, collection, detail) values ('attach', p_collection, p_source::text);
  return case when before.name is null then 'attached' when kept then 'changed' when intact then 'attached anew' else 'repaired' end;
end $$;
comment on function catchword.attach is 'makes a table a collection; repeating it changes nothing';

create function catchword.drop_triggers(p_collection text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
  delete from catchword.record where collection = p_collection;
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
