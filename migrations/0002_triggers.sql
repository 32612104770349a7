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

-- Always in quotes: words of PL/pgSQL are no words of SQL, and %I leaves them bare.
create function catchword.quoted(p_name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select '"' || replace(p_name, '"', '""') || '"'
$$;
comment on function catchword.quoted is 'a name in double quotes';

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

create function catchword.foreign_key(p_source regclass, p_touch jsonb) returns name
language sql stable set search_path = pg_catalog, pg_temp as $$
  select k.conname from pg_constraint k
    join pg_attribute mine on mine.attrelid = p_source and mine.attname = p_touch ->> 'row_column' and k.conkey = array[mine.attnum]
    join pg_attribute theirs on theirs.attrelid = k.confrelid and theirs.attname = p_touch ->> 'column' and k.confkey = array[theirs.attnum]
   where k.contype = 'f' and k.convalidated and k.conrelid = p_source and k.confrelid = to_regclass(p_touch ->> 'table')
   order by k.conname limit 1
$$;
comment on function catchword.foreign_key is 'the foreign key that holds the rows of a table to the rows of a related one; null: there is none';

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

revoke execute on all functions in schema catchword from public;
