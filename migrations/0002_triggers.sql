-- The triggers of a collection. The functions that they run are written out here, each from its first line to its
-- last, with a name in braces wherever tables differ: `{table}`, `{n_key}`. `trigger_names` and `touch_names` say what
-- each name stands for, `fill` puts it in, and `attach_statements` has all statements in their order. `catchword
-- migrate --dry-run` prints them as they are for your tables, and `attach` (0004_attach.sql) runs just these.
--
-- The application's session has its own search_path, role and rights, and none of them matters here: the functions
-- have a path of their own and the rights of their owner.

-- One pass from left to right: what was put in is not looked at again, whatever a column is called. What a name stands
-- for may have a hole, and then it is an array of the texts around the hole: {t_at $1} puts $1 into it.
create function catchword.fill(p_template text, p_names jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  place constant text := '\{([a-z_]+)(?: ([^{}]+))?\}';
  unknown_name text;
begin
  select m[1] into unknown_name from regexp_matches(p_template, place, 'g') as m
   where p_names ->> m[1] is null or (jsonb_typeof(p_names -> m[1]) = 'array') <> (m[2] is not null);
  if found then
    raise exception 'a template has {%}, and nothing is known that it stands for', unknown_name;
  end if;
  return (select string_agg(piece || coalesce(case when name[2] is null then p_names ->> name[1]
                                                   else (select string_agg(around, name[2] order by nth)
                                                           from jsonb_array_elements_text(p_names -> name[1])
                                                                with ordinality as e (around, nth)) end, ''),
                            '' order by n)
            from rows from (regexp_split_to_table(p_template, place), regexp_matches(p_template, place, 'g'))
                 with ordinality as parts (piece, name, n));
end $$;
comment on function catchword.fill is 'a template with each {name} replaced; refuses a name that is not known';

-- Every write of a row draws a number.
create function catchword.revision_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {revision_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
begin
  new.{revision} := nextval('catchword.revision');
  return new;
end $f$$t$;
comment on function catchword.revision_template is 'draws the number of a row';

-- With `watch` an update draws a number only if the bytes of a watched column changed: what is equal may look
-- different (1.0 and 1.00, draft and DRAFT in some collations), and json, xml and point know no "equal".
create function catchword.watched_revision_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {revision_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
declare
  changed boolean := true;
begin
  if tg_op = 'UPDATE' then
    begin
      changed := record_image_ne(row({new_watched}), row({old_watched}));
    exception when others then
      -- what cannot be compared counts as changed: a column that was renamed or retyped must not fail the write
      changed := true;
    end;
  end if;
  if changed then
    new.{revision} := nextval('catchword.revision');
  end if;
  return new;
end $f$$t$;
comment on function catchword.watched_revision_template is 'draws the number of a row if a watched column changed';

-- An insert leaves its jobs, and that is all: if its number lies below that of a delete it waited for, its version is
-- above it all the same.
--
-- Jobs of a statement are live, by the one insert that is enough as a rule; where there are more than 1,000, they are
-- spaced like those of a reindex. `offset 0` asks for the base once and not once per row, which took 40 s for 10,000
-- rows.
create function catchword.inserted_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {inserted_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp {iso_dates} as $f$
#variable_conflict use_variable
begin
  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
  select {collection}, {n_key}, {due}, {live}, {tag}, {traceparent}
    from new_rows n
   where not exists (select from new_rows offset 1000);
  if not found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select {collection}, {n_key}, {spaced}, {due}, {part}, {tag}, {traceparent}
      from new_rows n, (select {base} offset 0) as b (base)
     where exists (select from new_rows offset 1000);
  end if;
  return null;
end $f$$t$;
comment on function catchword.inserted_template is 'schedules the rows of an insert';

-- An update leaves jobs for its rows; and where keys changed, the old ones are gone. These are found by statement and
-- not by row, so that over a thousand of them stand behind live writes too; by `except`, which is quick whatever size
-- the plan is from.
create function catchword.updated_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {updated_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp {join_by_hash} {iso_dates} as $f$
#variable_conflict use_variable
declare
  old_keys constant text[] := array(
    select {o_key} from (select {o_columns} from old_rows o except select {n_columns} from new_rows n) as o);
begin
  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
  select {collection}, {n_key}, {due}, {live}, {tag}, {traceparent}
    from new_rows n
   where not exists (select from new_rows offset 1000) and {changed};
  if not found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select {collection}, {n_key}, {spaced}, {due}, {part}, {tag}, {traceparent}
      from new_rows n, (select {base} offset 0) as b (base)
     where exists (select from new_rows offset 1000) and {changed};
  end if;

  if cardinality(old_keys) > 0 then
    with forgotten as (
      delete from catchword.record where ctid = any(array(
        select r.ctid from catchword.record r
         where r.collection = {collection} and r.key = any(old_keys)
           and cardinality(old_keys) <= 1000 and {read_committed}
           for update skip locked)))
    insert into catchword.record (collection, key, revision)
    select {collection}, gone.key, nextval('catchword.revision') + 1
      from unnest(old_keys) as gone (key) where octet_length(gone.key) <= 512;

    insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
    select {collection}, gone.key, {due}, {live}, {tag}, {traceparent}
      from unnest(old_keys) as gone (key)
     where cardinality(old_keys) <= 1000;
    if not found then
      insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
      select {collection}, gone.key, {spaced}, {due}, {part}, {tag}, {traceparent}
        from unnest(old_keys) as gone (key), (select {base} offset 0) as b (base)
       where cardinality(old_keys) > 1000;
    end if;
  end if;
  return null;
end $f$$t$;
comment on function catchword.updated_template
  is 'schedules the rows of an update; records and schedules the keys that it changed';

-- A delete and a truncate: `{rows}` are the old rows, or all of the table. The numbers of keys that are gone are
-- recorded. Older records of a few keys go with it where that can neither fail nor wait: in an older snapshot somebody
-- may have come first, and one that is locked is passed over. The sweep forgets the others.
create function catchword.deleted_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {deleted_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp {iso_dates} as $f$
#variable_conflict use_variable
begin
  if tg_op = 'TRUNCATE' and not {read_committed} then
    -- the snapshot is older than the lock: rows committed since would be emptied without a trace
    raise exception using errcode = 'CW001',
      message = 'truncate of a table attached to catchword needs read committed',
      hint = 'use delete, or begin the transaction with: isolation level read committed';
  end if;

  with forgotten as (
    delete from catchword.record where ctid = any(array(
      select r.ctid from catchword.record r
       where r.collection = {collection} and r.key = any(array(select {o_key} from {rows} o))
         and not exists (select from {rows} offset 1000) and {read_committed}
         for update skip locked)))
  insert into catchword.record (collection, key, revision)
  select {collection}, {o_key}, nextval('catchword.revision') + 1
    from {rows} o where octet_length({o_key}) <= 512;

  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent)
  select {collection}, {o_key}, {due}, {live}, {tag}, {traceparent}
    from {rows} o
   where not exists (select from {rows} offset 1000);
  if not found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select {collection}, {o_key}, {spaced}, {due}, {part}, {tag}, {traceparent}
      from {rows} o, (select {base} offset 0) as b (base)
     where exists (select from {rows} offset 1000);
  end if;
  return null;
end $f$$t$;
comment on function catchword.deleted_template
  is 'records and schedules the keys of rows that are deleted, or of a table that is emptied';

-- A related table: a job for each changed value, and nothing else; the worker finds the rows after the commit. Values
-- travel as text. The settings are the same for every writer, and the worker's: 01/02/2026 is one day.
create function catchword.touch_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {touch_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD' set intervalstyle = 'postgres' set timezone = 'UTC' set bytea_output = 'hex'
set extra_float_digits = 3 set lc_monetary = 'C' as $f$
#variable_conflict use_variable
begin
  if tg_op = 'TRUNCATE' then
    if not {read_committed} then
      raise exception using errcode = 'CW001',
        message = 'truncate of a table that catchword watches needs read committed',
        hint = 'use delete, or begin the transaction with: isolation level read committed';
    end if;
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select {touch} from (select r.{column}::text from only {related} r group by 1) as changed (v) where v is not null;

  elsif tg_op = 'INSERT' then
    -- under a foreign key nobody can have referred to a row before it was there
    if {insert_matters} then
      insert into catchword.job (name, collection, key, priority, tag, traceparent)
      select {touch} from (select r.{column}::text from new_rows r group by 1) as changed (v) where v is not null;
    end if;

  elsif tg_op = 'DELETE' then
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select {touch} from (select r.{column}::text from old_rows r group by 1) as changed (v) where v is not null;

  else
    if {is_watched} then
      begin
        -- old and new rows meet by their primary key; one whose watched columns have the same bytes touches nothing
        insert into catchword.job (name, collection, key, priority, tag, traceparent)
        select {touch} from (
          select v from (select o.{column}::text, n.{column}::text from old_rows o full join new_rows n on {same_row}
                          where record_image_ne(row({old_watched}), row({new_watched}))) as pair (before, after),
                 lateral (values (before), (after)) as sides (v) group by v) as changed (v)
         where v is not null;
        return null;
      exception when others then
        -- what cannot be compared counts as changed: a column that was renamed or retyped must not fail the write
        null;
      end;
    end if;
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select {touch} from (
      select r.{column}::text from old_rows r union select r.{column}::text from new_rows r) as changed (v)
     where v is not null;
  end if;
  return null;
end $f$$t$;
comment on function catchword.touch_template is 'schedules a touch for each value that changed in a related table';

-- Several collections may be on one table, so a trigger's name has the collection's in it: 63 bytes at most, which is
-- what Postgres keeps. The one that draws the number sorts behind the application's own.
create function catchword.trigger_name(p_collection text, p_what text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format(case p_what when 'revision' then 'zzz_catchword_%s_%s' else 'catchword_%s_%s' end, p_collection, p_what)
$$;
comment on function catchword.trigger_name is 'the name of a trigger of a collection on its own table';

-- What the names in braces stand for. Whatever comes from outside is quoted here.
--
-- A setting can never fail a write: it is taken only where it looks right. After a transaction-local set_config a
-- setting is ''. In a serializable transaction the queue is not read at all: what is read there can fail the commit.
create function catchword.trigger_names(
  p_collection text, p_source regclass, p_key name[], p_revision text, p_watch text[], p_delay integer
) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select catchword.key_names(p_key, catchword.key_types(p_source, p_key)) || jsonb_build_object(
    'collection', quote_literal(p_collection),
    'table', catchword.full_name(p_source),
    'revision', catchword.quoted(p_revision),
    'revision_function', format('catchword.%I', p_collection || '_revision'),
    'inserted_function', format('catchword.%I', p_collection || '_inserted'),
    'updated_function', format('catchword.%I', p_collection || '_updated'),
    'revision_trigger', catchword.trigger_name(p_collection, 'revision'),
    'inserted_trigger', catchword.trigger_name(p_collection, 'inserted'),
    'updated_trigger', catchword.trigger_name(p_collection, 'updated'),
    'deleted_trigger', catchword.trigger_name(p_collection, 'deleted'),
    'truncated_trigger', catchword.trigger_name(p_collection, 'truncated'),
    'live', catchword.priority_live(),
    'part', catchword.priority_part(),
    'due', format($v$now() + case when current_setting('catchword.delay', true) ~ '^[0-9]{1,4}$'
                and current_setting('catchword.delay', true)::integer <= 3600
               then make_interval(secs => current_setting('catchword.delay', true)::integer)
               else interval '%s seconds' end$v$, p_delay),
    'tag', $v$coalesce(nullif(left(current_setting('catchword.tag', true), 100), ''), lower(tg_op))$v$,
    'traceparent', $v$nullif(left(current_setting('catchword.traceparent', true), 55), '')$v$,
    'read_committed', r.read_committed,
    'base', format('case when %s then catchword.bulk_base(%L, %s) else now() end',
                   r.read_committed, p_collection, catchword.priority_part()),
    'spaced', $v$b.base + row_number() over () * interval '1 microsecond'$v$,
    'new_watched', w.new_watched,
    'old_watched', w.old_watched,
    -- only a drawn number is new in the statement; joined by hash, because the plan is kept from a statement of
    -- another size
    'changed', case when p_watch = '{}' then 'true'
      else format('n.%1$s is not null and not exists (select from old_rows o where o.%1$s = n.%1$s)',
                  catchword.quoted(p_revision)) end,
    'join_by_hash', case when p_watch = '{}' then '' else 'set enable_nestloop = off' end,
    -- a date is one text, whatever the session's own style
    'iso_dates', case when 'date' = any(catchword.key_types(p_source, p_key))
                      then $v$set datestyle = 'ISO, MDY'$v$ else '' end)
    from (values ($v$(current_setting('transaction_isolation') in ('read committed', 'read uncommitted'))$v$)
         ) as r (read_committed),
         (select string_agg('new.' || catchword.quoted(name), ', ' order by name),
                 string_agg('old.' || catchword.quoted(name), ', ' order by name)
            from (select unnest(p_watch) union select unnest(p_key) union select p_revision) as t (name)
         ) as w (new_watched, old_watched)
$$;
comment on function catchword.trigger_names is 'what the names in the templates stand for, of one collection';

create function catchword.foreign_key(p_source regclass, p_touch jsonb) returns name
language sql stable set search_path = pg_catalog, pg_temp as $$
  select k.conname from pg_constraint k
    join pg_attribute mine on mine.attrelid = p_source and mine.attname = p_touch ->> 'row_column'
                          and k.conkey = array[mine.attnum]
    join pg_attribute theirs on theirs.attrelid = k.confrelid and theirs.attname = p_touch ->> 'column'
                            and k.confkey = array[theirs.attnum]
   where k.contype = 'f' and k.convalidated and k.conrelid = p_source and k.confrelid = to_regclass(p_touch ->> 'table')
   order by k.conname limit 1
$$;
comment on function catchword.foreign_key
  is 'the foreign key that holds the rows of a table to the rows of a related one; null: there is none';

create function catchword.resolve_touches(p_source regclass, p_touches jsonb, p_path text) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(jsonb_agg(touch || jsonb_strip_nulls(
                    jsonb_build_object('foreign_key', catchword.foreign_key(p_source, touch))) order by n), '[]')
    from (select jsonb_set(t, '{table}', to_jsonb(catchword.full_name(catchword.named(t ->> 'table', p_path)))), n
            from jsonb_array_elements(p_touches) with ordinality as e (t, n)) as resolved (touch, n)
   where touch is not null
$$;
comment on function catchword.resolve_touches
  is 'the same touches, each with the full name of its table and the foreign key that leads there';

-- Of the touch with the number n, as `resolve_touches` wrote it.
create function catchword.touch_names(p_names jsonb, p_collection text, p_touch jsonb, p_n bigint) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select p_names || jsonb_build_object(
    'related', p_touch ->> 'table',
    'column', catchword.quoted(p_touch ->> 'column'),
    'touch_function', format('catchword.%I', p_collection || '_touch_' || p_n),
    'insert_trigger', format('%I', 'catchword_' || p_collection || '_' || p_n || '_insert'),
    'update_trigger', format('%I', 'catchword_' || p_collection || '_' || p_n || '_update'),
    'delete_trigger', format('%I', 'catchword_' || p_collection || '_' || p_n || '_delete'),
    'truncate_trigger', format('%I', 'catchword_' || p_collection || '_' || p_n || '_truncate'),
    'touch', format('''touch'', %L, %L || v, %s, %s, %s', p_collection, (p_touch ->> 'row_column') || '=',
                    p_names ->> 'live', p_names ->> 'tag', p_names ->> 'traceparent'),
    'insert_matters', not p_touch ? 'foreign_key',
    'is_watched', p_touch ? 'watch',
    'same_row', coalesce(same.row, 'false'),
    'new_watched', w.new_watched,
    'old_watched', w.old_watched)
    from (select string_agg(format('n.%1$s %2$s o.%1$s', catchword.quoted(a.attname), catchword.equality(a.atttypid)),
                            ' and ' order by a.attnum)
            from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
           where i.indrelid = to_regclass(p_touch ->> 'table') and i.indisprimary) as same (row),
         (select string_agg('n.' || catchword.quoted(name), ', ' order by name),
                 string_agg('o.' || catchword.quoted(name), ', ' order by name)
            from (select jsonb_array_elements_text(p_touch -> 'watch') union select p_touch ->> 'column') as t (name)
         ) as w (new_watched, old_watched)
$$;
comment on function catchword.touch_names is 'what the names in the templates stand for, of one related table';

create function catchword.touch_statements(p_names jsonb) returns setof text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select catchword.fill(template, p_names) from (values
    (1, catchword.touch_template()),
    (2, 'create or replace trigger {insert_trigger} after insert on {related}
  referencing new table as new_rows for each statement execute function {touch_function}()'),
    (3, 'create or replace trigger {update_trigger} after update on {related}
  referencing old table as old_rows new table as new_rows for each statement execute function {touch_function}()'),
    (4, 'create or replace trigger {delete_trigger} after delete on {related}
  referencing old table as old_rows for each statement execute function {touch_function}()'),
    (5, 'create or replace trigger {truncate_trigger} before truncate on {related}
  for each statement execute function {touch_function}()')) as statements (n, template)
   order by n
$$;
comment on function catchword.touch_statements is 'the SQL for one related table, as text';

create function catchword.attach_statements(
  p_collection text, p_source regclass, p_key name[], p_revision text, p_watch text[], p_touches jsonb, p_delay integer,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns setof text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  names constant jsonb := catchword.trigger_names(p_collection, p_source, p_key, p_revision, p_watch, p_delay);
  deleted constant jsonb := names || jsonb_build_object(
    'deleted_function', format('catchword.%I', p_collection || '_deleted'), 'rows', 'old_rows');
  truncated constant jsonb := names || jsonb_build_object(
    'deleted_function', format('catchword.%I', p_collection || '_truncated'), 'rows', 'only ' || (names ->> 'table'));
  touches constant jsonb := catchword.resolve_touches(p_source, p_touches, p_path);
begin
  if not catchword.has_column(p_source, p_revision) then
    return next catchword.fill('alter table {table} add column {revision} bigint', names);
    return next catchword.fill(
      $t$comment on column {table}.{revision} is 'catchword: the revision of this row'$t$, names);
  end if;

  return next catchword.fill(
    case when p_watch = '{}' then catchword.revision_template() else catchword.watched_revision_template() end, names);
  return next catchword.fill('create or replace trigger {revision_trigger} before insert or update on {table}
  for each row execute function {revision_function}()', names);

  return next catchword.fill(catchword.inserted_template(), names);
  return next catchword.fill('create or replace trigger {inserted_trigger} after insert on {table}
  referencing new table as new_rows for each statement execute function {inserted_function}()', names);

  return next catchword.fill(catchword.updated_template(), names);
  return next catchword.fill('create or replace trigger {updated_trigger} after update on {table}
  referencing old table as old_rows new table as new_rows
  for each statement execute function {updated_function}()', names);

  return next catchword.fill(catchword.deleted_template(), deleted);
  return next catchword.fill('create or replace trigger {deleted_trigger} after delete on {table}
  referencing old table as old_rows for each statement execute function {deleted_function}()', deleted);

  return next catchword.fill(catchword.deleted_template(), truncated);
  return next catchword.fill('create or replace trigger {truncated_trigger} before truncate on {table}
  for each statement execute function {deleted_function}()', truncated);

  return query
    select s from jsonb_array_elements(touches) with ordinality as e (touch, n),
                  catchword.touch_statements(catchword.touch_names(names, p_collection, touch, n)) as s;

  -- nobody may hang these functions on a table of their own and forge jobs with them
  return next (
    select format('revoke execute on function %s from public',
                  string_agg(format('catchword.%I()', p_collection || suffix), ', '))
      from unnest(array['_revision', '_inserted', '_updated', '_deleted', '_truncated']
                  || array(select '_touch_' || n from generate_series(1, jsonb_array_length(touches)) as n)
           ) as s (suffix));
end $$;
comment on function catchword.attach_statements is 'the SQL that attaches a table, as text; attach runs it';

revoke execute on all functions in schema catchword from public;
