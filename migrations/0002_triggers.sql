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
--
-- As a rule nothing is set, either. Each variable and each expression costs the writer a microsecond or more in each
-- transaction, because plpgsql prepares it again: so the first insert does without, and the others stand behind it.
create function catchword.inserted_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {inserted_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp {iso_dates} as $f$
#variable_conflict use_variable
{declare_lanes}begin
{lanes_of_inserted}  insert into catchword.job (collection, key, scheduled_at, priority, tag{lane})
  select {collection}, {n_key}, {due}, {live}, 'insert'{next_lane}
    from new_rows n
   where ({is_set}) is not true and not exists (select from new_rows offset 1000);
  if found then
    return null;
  end if;

  declare
{settings}
  tag text := 'insert';
  begin
{heed_settings}
    insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent{lane})
    select {collection}, {n_key}, due, live, tag, traceparent{next_lane}
      from new_rows n
     where not exists (select from new_rows offset 1000);
    if not found then
      insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
      select {collection}, {n_key}, {spaced}, due, {part}, tag, traceparent
        from new_rows n, (select {base} offset 0) as b (base)
       where exists (select from new_rows offset 1000);
    end if;
    return null;
  end;
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
{settings}
  tag text := 'update';
{variable_lanes}begin
{heed_settings}
{lanes_of_updated}  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent{lane})
  select {collection}, {n_key}, due, live, tag, traceparent{next_lane}
    from new_rows n
   where not exists (select from new_rows offset 1000) and {changed};
  if not found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select {collection}, {n_key}, {spaced}, due, {part}, tag, traceparent
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
    select {collection}, gone.key, due, live, tag, traceparent
      from unnest(old_keys) as gone (key)
     where cardinality(old_keys) <= 1000;
    if not found then
      insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
      select {collection}, gone.key, {spaced}, due, {part}, tag, traceparent
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
declare
{settings}
  tag text := lower(tg_op);
{variable_lanes}begin
{heed_settings}
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

{lanes_of_deleted}  insert into catchword.job (collection, key, scheduled_at, priority, tag, traceparent{lane})
  select {collection}, {o_key}, due, live, tag, traceparent{next_lane}
    from {rows} o
   where not exists (select from {rows} offset 1000);
  if not found then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent)
    select {collection}, {o_key}, {spaced}, due, {part}, tag, traceparent
      from {rows} o, (select {base} offset 0) as b (base)
     where exists (select from {rows} offset 1000);
  end if;
  return null;
end $f$$t$;
comment on function catchword.deleted_template
  is 'records and schedules the keys of rows that are deleted, or of a table that is emptied';

-- The rows of a partitioned table. A trigger for each statement would see those statements only that name the table it
-- is on; a trigger for each row is made by Postgres on every partition, also on those that are still to come. The
-- transaction counts the rows of its statement: from the 1,001st on they stand behind live writes, spaced as above. A
-- row that moves to another partition is deleted there and inserted here. Its number was drawn before that of the
-- delete, so its version is the one above it.
create function catchword.row_template() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$create or replace function {row_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp {iso_dates} as $f$
#variable_conflict use_variable
declare
  n alias for new;
  o alias for old;
  told constant text := current_setting({counter}, true);
  stamp constant text := extract(epoch from statement_timestamp())::text;
  counted integer := 0;
  base numeric;
  old_key text;
  new_key text;
{settings}
  tag text := lower(tg_op);
{variable_lane}begin
  if tg_op <> 'DELETE' then
    new_key := {n_key};
  end if;
  if tg_op <> 'INSERT' then
    old_key := nullif({o_key}, new_key);
  end if;
  if tg_op = 'UPDATE' and old_key is null and n.{revision} is not distinct from o.{revision} then
    return null;
  end if;
  -- what another session of the application has written there is not taken
  if told ~ '^[0-9.]+ [0-9]{1,9} [0-9.]{0,20}$' and split_part(told, ' ', 1) = stamp then
    counted := split_part(told, ' ', 2)::integer;
    base := nullif(split_part(told, ' ', 3), '')::numeric;
  end if;
  counted := counted + 1;
  if counted > 1000 and base is null then
    base := extract(epoch from {base});
  end if;
  perform set_config({counter}, stamp || ' ' || counted || ' ' || coalesce(base::text, ''), true);
{heed_settings}
{lane_of_row}
  if new_key is not null then
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent{lane})
    values ({collection}, new_key, {row_enqueued}, due, {row_priority}, tag, traceparent{row_lane});
  end if;
  if old_key is not null then
    if counted <= 1000 and {read_committed} then
      delete from catchword.record where ctid = any(array(
        select r.ctid from catchword.record r
         where r.collection = {collection} and r.key = old_key for update skip locked));
    end if;
    insert into catchword.record (collection, key, revision)
    select {collection}, old_key, nextval('catchword.revision') + 1 where octet_length(old_key) <= 512;
    insert into catchword.job (collection, key, enqueued_at, scheduled_at, priority, tag, traceparent{lane})
    values ({collection}, old_key, {row_enqueued}, due, {row_priority}, tag, traceparent{row_lane});
  end if;
  return null;
end $f$$t$;
comment on function catchword.row_template is 'records and schedules a row of a partitioned table';

-- A partition that is emptied tells its own keys. A trigger on the table above it tells only those of partitions that
-- have none yet, because they are new. A partition that was detached has nothing to tell any more.
create function catchword.emptied_keys(p_source regclass, p_relation regclass, p_trigger text, p_key text)
returns table (key text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  leaf oid;
begin
  for leaf in
    select t.relation
      from catchword.tree(p_relation) t
     where t.leaf and exists (select from catchword.tree(p_source) s where s.relation = t.relation)
       and (t.relation = p_relation
            or not exists (select from pg_trigger g where g.tgrelid = t.relation and g.tgname = p_trigger))
  loop
    return query execute format('select %s from only %s o', p_key, catchword.full_name(leaf));
  end loop;
end $$;
comment on function catchword.emptied_keys is 'the keys of a table, or of its partitions, that is about to be emptied';

-- A related table: a job for each changed value, and nothing else; the worker finds the rows after the commit. Values
-- travel as text. The settings are the same for every writer, and the worker's: 01/02/2026 is one day. Where no setting
-- can change the text, as of a uuid, none is set: each costs the writer some microseconds.
--
-- Nothing here can fail the write. The values are gathered in a block that catches errors, and written behind it: so
-- the block costs no transaction number. If they cannot be told, because a column is gone or an expression of the
-- configuration fails, a touch says so instead. The worker refuses that one with its error, and it becomes a dead
-- letter. One of them is enough for as long as it is open.
create function catchword.touch_end() returns text
language sql immutable set search_path = pg_catalog, pg_temp
return $t$
  -- mostly there is nothing to touch, and a statement that inserts nothing costs the writer nearly as much
  if changed <> '{}' then
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select {touch} from unnest(changed) as c (v);
  end if;
  if problem is not null then
    problem := {related_text} || '=' || lower(tg_op) || ': ' || left(problem, 200);
    insert into catchword.job (name, collection, key, priority, tag, traceparent)
    select 'touch', {collection}, '!' || problem, {quick}, {tag}, {traceparent}
     where not ({read_committed} and exists (
             select from catchword.job j
              where j.name = 'touch' and j.collection = {collection} and j.key = '!' || problem));
  end if;
  return null;
end $f$$t$;
comment on function catchword.touch_end
  is 'schedules the touches that a trigger gathered; or one that says why it could not';

create function catchword.touch_template() returns text
language sql stable set search_path = pg_catalog, pg_temp
return $t$create or replace function {touch_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp {join_by_hash}
{one_text} as $f$
#variable_conflict use_column
declare
  changed text[];
  problem text;
begin
  if tg_op = 'TRUNCATE' and not {read_committed} then
    raise exception using errcode = 'CW001',
      message = 'truncate of a table that catchword watches needs read committed',
      hint = 'use delete, or begin the transaction with: isolation level read committed';
  end if;

  begin
    if tg_op = 'TRUNCATE' then
      changed := array(select c.v from (select {value} from only {related} r{elements}) as c (v)
                        where c.v is not null group by c.v);
    elsif tg_op = 'DELETE' then
      changed := array(select c.v from (select {value} from old_rows r{elements}) as c (v)
                        where c.v is not null group by c.v);
    else
      begin
        if {is_watched} then
          -- old and new rows meet by their primary key; one whose watched columns have the same bytes touches nothing
          changed := array(
            select c.v from (
              select {value} from old_rows r{elements}
               where not exists (select from new_rows n where {same_as_new})
              union
              select {value} from new_rows r{elements}
               where not exists (select from old_rows o where {same_as_old})) as c (v)
             where c.v is not null);
        end if;
      exception when others then
        -- what cannot be compared counts as changed
        changed := null;
      end;
      if changed is null then
        changed := array(
          select c.v from (
            select {value} from old_rows r{elements} union select {value} from new_rows r{elements}) as c (v)
           where c.v is not null);
      end if;
    end if;
  exception when others then
    get stacked diagnostics problem = message_text;
    changed := null;
  end;
$t$ || catchword.touch_end();
comment on function catchword.touch_template is 'schedules a touch for each value that changed in a related table';

-- Inserts have a function of their own, because they are most of what an application writes, and mostly they have
-- nothing to touch: no reply, no parent. It joins nothing, so it has no setting of the planner; and as a rule the one
-- question that it asks is all that it evaluates, because whatever is evaluated costs the writer.
create function catchword.touch_insert_template() returns text
language sql stable set search_path = pg_catalog, pg_temp
return $t$create or replace function {insert_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
{one_text} as $f$
#variable_conflict use_column
declare
  changed text[];
  problem text;
begin
  begin
    if not exists (select from (select {value} from new_rows r{elements}) as c (v) where c.v is not null) then
      return null;
    end if;
    changed := array(select c.v from (select {value} from new_rows r{elements}) as c (v)
                      where c.v is not null group by c.v);
  exception when others then
    get stacked diagnostics problem = message_text;
    changed := null;
  end;
$t$ || catchword.touch_end();
comment on function catchword.touch_insert_template
  is 'schedules a touch for each value in new rows of a related table';

-- A related table that is partitioned: triggers of a statement see only what names their own table, those of a row are
-- made for each partition by Postgres itself, also for later ones. A truncate has none, so each partition gets one.
create function catchword.touch_row_template() returns text
language sql stable set search_path = pg_catalog, pg_temp
return $t$create or replace function {touch_function}() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp
{one_text} as $f$
#variable_conflict use_column
declare
  changed text[];
  problem text;
begin
  if tg_op = 'TRUNCATE' and not {read_committed} then
    raise exception using errcode = 'CW001',
      message = 'truncate of a table that catchword watches needs read committed',
      hint = 'use delete, or begin the transaction with: isolation level read committed';
  end if;

  begin
    if tg_op = 'TRUNCATE' then
      execute format({emptied}, tg_table_schema, tg_table_name) into changed;
    elsif tg_op = 'INSERT' then
      changed := array(select c.v from (select {value} from (select new.*) as r{elements}) as c (v)
                        where c.v is not null group by c.v);
    elsif tg_op = 'DELETE' then
      changed := array(select c.v from (select {value} from (select old.*) as r{elements}) as c (v)
                        where c.v is not null group by c.v);
    else
      begin
        if {is_watched} and record_image_eq(row({old_watched}), row({new_watched})) then
          changed := '{}';
        end if;
      exception when others then
        -- what cannot be compared counts as changed
        changed := null;
      end;
      if changed is null then
        changed := array(
          select c.v from (select {value} from (select old.*) as r{elements}
                           union select {value} from (select new.*) as r{elements}) as c (v)
           where c.v is not null);
      end if;
    end if;
  exception when others then
    get stacked diagnostics problem = message_text;
    changed := null;
  end;
$t$ || catchword.touch_end();
comment on function catchword.touch_row_template
  is 'the same for a related table that is partitioned: a touch for each row';

-- Several collections may be on one table, so a trigger's name has the collection's in it: 63 bytes at most, which is
-- what Postgres keeps. The one that draws the number sorts behind the application's own.
create function catchword.trigger_name(p_collection text, p_what text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format(case p_what when 'revision' then 'zzz_catchword_%s_%s' else 'catchword_%s_%s' end,
                split_part(p_collection, '$', 1), p_what)
$$;
comment on function catchword.trigger_name is 'the name of a trigger of a collection on its own table';

-- The lane of a row: a small number made from the value of `fair_by`, here as an expression. It reads nothing but the
-- row, so a write waits for nobody. `schema` means the schema, where a collection has many.
create function catchword.lane_of(p_fair_by text, p_row text, p_schema text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when p_fair_by = 'schema' and p_schema is not null then catchword.lane(p_schema)::text
              else format($v$(hashtextextended(coalesce(%s.%s::text, ''), 0) & 63)::smallint$v$,
                          p_row, catchword.quoted(p_fair_by)) end
$$;
comment on function catchword.lane_of is 'an expression for the lane of a row; null without fair_by';

-- Lanes are gathered in a block that catches errors, before anything is written: a column that was renamed must not
-- fail the write. Then the jobs are in no lane, and are claimed in the order of time.
create function catchword.lane_names(p_fair_by text, p_schema text, p_changed text) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when p_fair_by is null
    then '{"lane": "", "next_lane": "", "row_lane": "", "variable_lanes": "", "variable_lane": "",
           "declare_lanes": "", "lanes_of_inserted": "", "lanes_of_updated": "", "lanes_of_deleted": "",
           "lane_of_row": ""}'::jsonb
    else jsonb_build_object(
      'lane', ', lane',
      'next_lane', ', lanes[row_number() over ()]',
      'row_lane', ', case when counted <= 1000 then lane end',
      'variable_lanes', E'  lanes smallint[];\n',
      'declare_lanes', E'declare\n  lanes smallint[];\n',
      'variable_lane', E'  lane smallint;\n',
      'lanes_of_inserted', format(gathered, l.of_new, 'new_rows n', 'new_rows', 'true'),
      'lanes_of_updated', format(gathered, l.of_new, 'new_rows n', 'new_rows', p_changed),
      'lanes_of_deleted', format(gathered, l.of_old, 'old_rows o', 'old_rows', 'true'),
      'lane_of_row', format($v$  begin
    if tg_op = 'DELETE' then
      lane := %s;
    else
      lane := %s;
    end if;
  exception when others then
    lane := null;
  end;
$v$, l.of_old, l.of_new)) end
    from (values ($v$  begin
    lanes := array(select %s from %s where not exists (select from %s offset 1000) and %s);
  exception when others then
    lanes := null;
  end;
$v$)) as g (gathered),
         (select catchword.lane_of(p_fair_by, 'n', p_schema), catchword.lane_of(p_fair_by, 'o', p_schema)
         ) as l (of_new, of_old)
$$;
comment on function catchword.lane_names is 'what the names in the templates stand for that have to do with lanes';

-- What the names in braces stand for. Whatever comes from outside is quoted here.
--
-- A setting can never fail a write: it is taken only where it looks right. After a transaction-local set_config a
-- setting is ''. As a rule there is none, and one expression (`{is_set}`) finds that: each that is evaluated costs the
-- writer.
-- In a serializable transaction the queue is not read at all: what is read there can fail the commit.
--
-- A member of a collection, `note$3`, has triggers and functions of its own, and leaves its jobs under the name of the
-- whole, `note`.
create function catchword.trigger_names(
  p_collection text, p_source regclass, p_key name[], p_revision text, p_watch text[], p_delay integer, p_schema text,
  p_fair_by text
) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select catchword.key_names(p_key, catchword.key_types(p_source, p_key), p_schema => p_schema) || jsonb_build_object(
    'collection', quote_literal(split_part(p_collection, '$', 1)),
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
    'counter', quote_literal('catchword.rows_' || split_part(p_collection, '$', 1)),
    'row_enqueued', $v$case when counted > 1000 then to_timestamp(base) + counted * interval '1 microsecond'
              else now() end$v$,
    'quick', catchword.priority_quick(),
    'part', catchword.priority_part(),
    'row_priority', format('case when counted > 1000 then %s else live end', catchword.priority_part()),
    'due', d.due,
    'live', d.live,
    'settings', format($v$  due timestamptz := %s;
  live integer := %s;
  traceparent text;$v$, d.due, d.live),
    'is_set', d.is_set,
    'heed_settings', format(
      $v$  if %s then
    if current_setting('catchword.delay', true) ~ '^[0-9]{1,4}$' then
      if current_setting('catchword.delay', true)::integer <= 3600 then
        due := now() + make_interval(secs => current_setting('catchword.delay', true)::integer);
        live := case when due > now() then %s else %s end;
      end if;
    end if;
    tag := coalesce(nullif(left(current_setting('catchword.tag', true), 100), ''), tag);
    traceparent := nullif(left(current_setting('catchword.traceparent', true), 55), '');
  end if;$v$, d.is_set, catchword.priority_live(), catchword.priority_quick()),
    'tag', $v$coalesce(nullif(left(current_setting('catchword.tag', true), 100), ''), lower(tg_op))$v$,
    'traceparent', $v$nullif(left(current_setting('catchword.traceparent', true), 55), '')$v$,
    'read_committed', r.read_committed,
    'base', format('case when %s then catchword.bulk_base(%L, %s) else now() end',
                   r.read_committed, split_part(p_collection, '$', 1), catchword.priority_part()),
    'spaced', $v$b.base + row_number() over () * interval '1 microsecond'$v$,
    'new_watched', w.new_watched,
    'old_watched', w.old_watched,
    'changed', c.changed,
    'join_by_hash', case when p_watch = '{}' then '' else 'set enable_nestloop = off' end,
    -- a date is one text, whatever the session's own style
    'iso_dates', case when 'date' = any(catchword.key_types(p_source, p_key))
                      then $v$set datestyle = 'ISO, MDY'$v$ else '' end)
    || catchword.lane_names(p_fair_by, p_schema, c.changed)
    from (values ($v$(current_setting('transaction_isolation') in ('read committed', 'read uncommitted'))$v$)
         ) as r (read_committed),
         (select case when p_delay > 0 then format('now() + make_interval(secs => %s)', p_delay) else 'now()' end,
                 case when p_delay > 0 then catchword.priority_live() else catchword.priority_quick() end,
                 $v$current_setting('catchword.delay', true) <> '' or current_setting('catchword.tag', true) <> ''
      or current_setting('catchword.traceparent', true) <> ''$v$) as d (due, live, is_set),
         (select string_agg('new.' || catchword.quoted(name), ', ' order by name),
                 string_agg('old.' || catchword.quoted(name), ', ' order by name)
            from (select unnest(p_watch) union select unnest(p_key) union select p_revision) as t (name)
         ) as w (new_watched, old_watched),
         -- only a drawn number is new in the statement; joined by hash, because the plan is kept from a statement of
         -- another size
         (select case when p_watch = '{}' then 'true'
                      else format('n.%1$s is not null and not exists (select from old_rows o where o.%1$s = n.%1$s)',
                                  catchword.quoted(p_revision)) end) as c (changed)
$$;
comment on function catchword.trigger_names is 'what the names in the templates stand for, of one collection';

create function catchword.truncated_names(p_collection text, p_source regclass, p_names jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select jsonb_build_object('deleted_function', format('catchword.%I', p_collection || '_truncated'),
                            'lanes_of_deleted', '')
         || case when catchword.is_partitioned(p_source)
                 then jsonb_build_object(
                   'rows', format('catchword.emptied_keys(%L::regclass, tg_relid, %L, %L)', p_source::oid,
                                  p_names ->> 'truncated_trigger', p_names ->> 'o_key'),
                   'o_key', 'o.key')
                 else jsonb_build_object('rows', catchword.rows_in(p_source)) end
$$;
comment on function catchword.truncated_names
  is 'what other names in the template of deletes stand for, where a table is emptied';

-- Postgres makes no trigger of a statement on partitions: each has one of its own.
create function catchword.truncate_statement(p_collection text, p_relation regclass) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select format('create or replace trigger %I before truncate on %s
  for each statement execute function catchword.%I()',
                catchword.trigger_name(p_collection, 'truncated'), catchword.full_name(p_relation),
                p_collection || '_truncated')
$$;
comment on function catchword.truncate_statement is 'the SQL for the trigger that sees a table or a partition emptied';

-- A setting that is one name or a list of them.
create function catchword.names_in(p_said jsonb) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case jsonb_typeof(p_said) when 'array' then array(select jsonb_array_elements_text(p_said))
                                   when 'string' then array[p_said #>> '{}'] else '{}' end
$$;
comment on function catchword.names_in is 'the names of a setting that is one name or a list of names';

-- How a touch names the column that its rows are found by: never with a sign that means something in a touch's key.
create function catchword.relation_of(p_column text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select replace(replace(replace(replace(replace(
           p_column, '%', '%25'), '=', '%3D'), '#', '%23'), '!', '%21'), '/', '%2F')
$$;
comment on function catchword.relation_of is 'a column''s name as it stands in the key of a touch';

create function catchword.column_of(p_relation text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select replace(replace(replace(replace(replace(
           p_relation, '%2F', '/'), '%21', '!'), '%23', '#'), '%3D', '='), '%25', '%')
$$;
comment on function catchword.column_of is 'the column that the key of a touch names';

create function catchword.element_type(p_type oid) returns oid
language sql stable set search_path = pg_catalog, pg_temp as $$
  with recursive base (oid, typbasetype, typelem, is_array) as (
    select t.oid, t.typbasetype, t.typelem, t.typsubscript = 'array_subscript_handler'::regproc
      from pg_type t where t.oid = p_type
    union all
    select t.oid, t.typbasetype, t.typelem, t.typsubscript = 'array_subscript_handler'::regproc
      from base b join pg_type t on t.oid = b.typbasetype
  )
  select typelem from base where typbasetype = 0 and is_array
$$;
comment on function catchword.element_type is 'the type of the elements of an array; null: it is no array';

create function catchword.primary_key(p_relation regclass) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  select array(select a.attname::text
                 from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
                where i.indrelid = p_relation and i.indisprimary order by a.attnum)
$$;
comment on function catchword.primary_key is 'the columns of a table''s primary key; none: it has none';

-- No such key where a value is an array, or an expression: then nobody holds its elements to anything.
create function catchword.foreign_key(p_source regclass, p_touch jsonb) returns name
language sql stable set search_path = pg_catalog, pg_temp as $$
  select k.conname from pg_constraint k
   where p_touch ? 'column' and p_touch ? 'row_column'
     and k.contype = 'f' and k.convalidated and k.conrelid = p_source and k.confrelid = to_regclass(p_touch ->> 'table')
     and cardinality(k.conkey) = cardinality(catchword.names_in(p_touch -> 'column'))
     and not exists (
       select from unnest(catchword.names_in(p_touch -> 'row_column'), catchword.names_in(p_touch -> 'column')
                         ) as said (mine, theirs)
        where not exists (
          select from unnest(k.conkey, k.confkey) as held (mine, theirs)
            join pg_attribute m on m.attrelid = k.conrelid and m.attnum = held.mine and m.attname = said.mine
            join pg_attribute t on t.attrelid = k.confrelid and t.attnum = held.theirs and t.attname = said.theirs
           where catchword.element_type(m.atttypid) is null))
   order by k.conname limit 1
$$;
comment on function catchword.foreign_key
  is 'the foreign key that holds the rows of a table to the rows of a related one; null: there is none';

-- What Postgres makes of an expression over a row. It is tried as a check of a table that is made and dropped: so it
-- is an expression and no query, and every name in it is written out.
create function catchword.read_expression(
  p_related regclass, p_value text, out expression text, out type oid, out columns text[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  execute format('create table catchword.trial (like %s, constraint trial check ((%s' || chr(10) || ') is null))',
                 catchword.full_name(p_related), p_value);
  select (regexp_match(pg_get_expr(k.conbin, k.conrelid), '^\((.*) IS NULL\)$'))[1],
         array(select a.attname::text from pg_attribute a where a.attrelid = k.conrelid and a.attnum = any(k.conkey)
                order by a.attnum)
    into expression, columns
    from pg_constraint k where k.conrelid = 'catchword.trial'::regclass and k.conname = 'trial';
  execute format('create view catchword.trial_view as select (%s) as v from catchword.trial', expression);
  select a.atttypid into type from pg_attribute a
   where a.attrelid = 'catchword.trial_view'::regclass and a.attname = 'v';
  drop view catchword.trial_view;
  drop table catchword.trial;
end $$;
comment on function catchword.read_expression
  is 'an expression over the rows of a table as Postgres writes it, its type, and the columns that it reads';

-- A query from values to keys, as Postgres writes it: every name with its schema, looked up by the caller's path once
-- and never again. `$1` is then the text of the values in their own type; of several columns, a touch has a list.
create function catchword.read_query(
  p_keys text, p_types text[], p_key_types text[], p_path text, p_schema text
) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  statement constant text := format(
    'create function catchword.trial(%s) returns table (%s) language sql stable begin atomic select * from (%s'
    || chr(10) || ') as q; end',
    (select string_agg(format('catchword_%s %s[]', n, t), ', ' order by n)
       from unnest(p_types) with ordinality as types (t, n)),
    (select string_agg(format('k%s %s', n, t), ', ' order by n)
       from unnest(p_key_types) with ordinality as types (t, n)),
    rtrim(p_keys, E' \t\n;'));
  given constant text[] := case cardinality(p_types)
    when 1 then array[format('($1::text[]::%s[])', p_types[1])]
    else array(select format('(array(select (e::jsonb ->> %s)::%s from unnest($1::text[]) as e))', n - 1, t)
                 from unnest(p_types) with ordinality as types (t, n)) end;
  body text;
  tree text;
begin
  perform set_config('search_path', p_path, true);
  execute statement;
  perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  select pg_get_function_sqlbody(p.oid), p.prosqlbody::text into body, tree
    from pg_proc p where p.pronamespace = 'catchword'::regnamespace and p.proname = 'trial';
  drop function catchword.trial;
  if position('{ROWMARKCLAUSE ' in tree) > 0 then
    raise exception 'it locks rows';
  elsif position(':paramid 1 ' in tree) = 0 then
    raise exception 'it does not read $1, the values that changed';
  end if;
  body := regexp_replace(body, '^BEGIN ATOMIC\s+(.*);\s+END$', '\1');
  -- in the key's own types, by which keys are sorted and compared
  body := format('select %s%s from (%s) as c (%s)', quote_literal(p_schema) || '::text, ',
                 (select string_agg(format('c.k%s::%s', n, t), ', ' order by n)
                    from unnest(p_key_types) with ordinality as types (t, n)), body,
                 (select string_agg('k' || n, ', ' order by n) from generate_subscripts(p_key_types, 1) as n));
  -- a parameter is written by its name; a text may have such a word in it, too
  return (select string_agg(coalesce(given[m[2]::integer], m[1]), '' order by n)
            from regexp_matches(body, $re$('(?:[^']|'')*'|"(?:[^"]|"")*"|(?:trial\.)?\mcatchword_([0-9]+)\M|.)$re$, 'g')
                 with ordinality as pieces (m, n));
end $$;
comment on function catchword.read_query
  is 'a query from values to keys as Postgres writes it; refuses what is not one';

create function catchword.entry_of(p_touch jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select left(md5((p_touch - 'watch')::text), 8)
$$;
comment on function catchword.entry_of is 'what an entry of touches is called in the key of a touch';

-- Of a collection over many schemas: a related table is in each of them, or one that all members share. A change of
-- a shared one may concern rows of all members, and only one of the members has its triggers.
create function catchword.touches_in(p_touches jsonb, p_schemas text, p_schema text) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select coalesce(jsonb_agg(
           case when p_schema is null then t
                else t || jsonb_strip_nulls(jsonb_build_object(
                       'table', catchword.in_schema(t ->> 'table', p_schemas, p_schema),
                       'value', catchword.in_schema(t ->> 'value', p_schemas, p_schema),
                       'keys', catchword.in_schema(t ->> 'keys', p_schemas, p_schema),
                       'shared', case when catchword.schemas_of(t ->> 'table') is null then true end,
                       'schema', p_schema,
                       'entry', catchword.entry_of(t))) end order by n), '[]')
    from jsonb_array_elements(p_touches) with ordinality as e (t, n)
$$;
comment on function catchword.touches_in is 'entries of touches as they are for one schema of many';

-- What is made of an entry of `touches`, whose table is written out already.
create function catchword.make_touch(p_source regclass, p_key name[], p_touch jsonb, p_path text) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  related constant regclass := to_regclass(p_touch ->> 'table');
  names constant text[] := catchword.names_in(p_touch -> 'column');
  expressions text[];
  types oid[];
  columns text[];
  type_names text[];
  query text;
begin
  if p_touch ? 'value' then
    select array[e.expression], array[e.type], e.columns into expressions, types, columns
      from catchword.read_expression(related, p_touch ->> 'value') as e;
  else
    select array_agg(catchword.quoted(said.name) order by said.n), array_agg(a.atttypid order by said.n)
      into expressions, types
      from unnest(names) with ordinality as said (name, n)
      join pg_attribute a on a.attrelid = related and a.attname = said.name and a.attnum > 0 and not a.attisdropped;
    columns := names;
  end if;
  -- -1 and not null: a null would make "character" of char(20), and that cuts a value to its first letter
  type_names := array(select format_type(coalesce(catchword.element_type(t), t), -1)
                        from unnest(types) with ordinality as e (t, n) order by n);
  if p_touch ? 'keys' then
    query := catchword.read_query(p_touch ->> 'keys', type_names, catchword.key_types(p_source, p_key), p_path,
                                  p_touch ->> 'schema');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'expressions', expressions, 'types', type_names, 'columns', columns, 'query', query,
    'elements', case when catchword.element_type(types[1]) is not null then true end,
    -- where rows cannot be found by one column alone
    'entry', case when query is not null or cardinality(names) > 1
                  then coalesce(p_touch ->> 'entry', catchword.entry_of(p_touch)) end,
    'partitions', (select jsonb_agg(catchword.full_name(p.relid) order by p.level, catchword.full_name(p.relid))
                     from pg_partition_tree(related) as p
                    where (select relkind from pg_class where oid = related) = 'p')));
end $$;
comment on function catchword.make_touch
  is 'what Postgres makes of an entry of touches: expressions and their types, the query, a name for it, partitions';

create function catchword.resolve_touches(p_source regclass, p_key name[], p_touches jsonb, p_path text) returns jsonb
language sql set search_path = pg_catalog, pg_temp as $$
  select coalesce(jsonb_agg(touch || jsonb_strip_nulls(jsonb_build_object(
                    'foreign_key', case when not touch ? 'shared' then catchword.foreign_key(p_source, touch) end,
                    'made', catchword.make_touch(p_source, p_key, touch, p_path))) order by n), '[]')
    from (select jsonb_set(t, '{table}', to_jsonb(catchword.full_name(catchword.named(t ->> 'table', p_path)))), n
            from jsonb_array_elements(p_touches) with ordinality as e (t, n)) as resolved (touch, n)
   where touch is not null
$$;
comment on function catchword.resolve_touches
  is 'the same touches, each with the full name of its table, the foreign key that leads there, and what is made of it';

-- Whose triggers see a related table: of one that members share, those of the whole.
create function catchword.touch_owner(p_collection text, p_touch jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_touch ? 'shared' then split_part(p_collection, '$', 1) else p_collection end
$$;
comment on function catchword.touch_owner is 'the name that the triggers of a related table have in theirs';

-- Who sees the inserts of a related table. Under a foreign key nobody has to: no row can have referred to one that was
-- not there. If the key goes, the collection is not served until it is attached again (`table_problems`).
create function catchword.insert_function(p_collection text, p_touch jsonb, p_n bigint) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format('%s_touch_%s%s', catchword.touch_owner(p_collection, p_touch), p_n,
                case when p_touch -> 'made' ? 'partitions' then '' else '_insert' end)
   where not p_touch ? 'foreign_key'
$$;
comment on function catchword.insert_function
  is 'the function of the trigger for inserts into a related table; null: there is no such trigger';

-- How the key of a touch begins: with the schema, if only rows of one member are meant.
create function catchword.relation_of_touch(p_touch jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_touch ? 'schema' and not p_touch ? 'shared'
              then catchword.relation_of(p_touch ->> 'schema') || '/' else '' end
         || coalesce('#' || (p_touch -> 'made' ->> 'entry'), catchword.relation_of(p_touch ->> 'row_column'))
$$;
comment on function catchword.relation_of_touch is 'the part of a touch''s key before the value';

-- True only where it is certain: the values are of such types, and an expression has nothing in it but columns of such
-- types, texts, `||`, `case`, subscripts and casts among them. Whatever calls a function, or has another word of SQL in
-- it, may ask for the time or make a date.
create function catchword.is_one_text(p_related regclass, p_touch jsonb) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(bool_and(type = any(plain)), false)
         and not exists (
           select from pg_attribute a
            where a.attrelid = p_related and a.attname in (select jsonb_array_elements_text(made -> 'columns'))
              and format_type(coalesce(catchword.element_type(a.atttypid), a.atttypid), -1) <> all(plain))
         and coalesce((
           select bool_and(bare ~ '^[a-z0-9_ .\[\]():|~]*$' and bare !~ '[a-z0-9_~]\s*\(' and casts !~ '::')
             from jsonb_array_elements_text(made -> 'expressions') as x (e),
                  -- a text or a name in quotes is one sign
                  lateral regexp_replace(e, $v$'([^']|'')*'|"([^"]|"")*"$v$, '~', 'g') as q (unquoted),
                  lateral regexp_replace(unquoted, '\m(CASE|WHEN|THEN|ELSE|END|AND|OR|NOT|IS|NULL)\M|\n', '|', 'g'
                                        ) as b (bare),
                  lateral regexp_replace(bare, '::(text|character varying|smallint|integer|bigint|uuid|boolean)\M', '',
                                         'g') as c (casts)), false)
    from (values (p_touch -> 'made',
                  '{text,"character varying",character,name,smallint,integer,bigint,oid,uuid,boolean}'::text[])
         ) as m (made, plain), jsonb_array_elements_text(made -> 'types') as t (type)
   group by made, plain
$$;
comment on function catchword.is_one_text
  is 'has each value of a touch the same text, whatever the settings of a session?';

-- Of the touch with the number n, as `resolve_touches` wrote it.
create function catchword.touch_names(p_names jsonb, p_collection text, p_touch jsonb, p_n bigint) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select p_names || jsonb_build_object(
    'related', p_touch ->> 'table',
    'related_text', quote_literal(p_touch ->> 'table'),
    'value', v.value,
    'elements', v.elements,
    'emptied', quote_literal(format(
      'select array(select c.v from (select %s from %%I.%%I r%s) as c (v) where c.v is not null group by c.v)',
      replace(v.value, '%', '%%'), replace(v.elements, '%', '%%'))),
    'touch_function', format('catchword.%I', owner || '_touch_' || p_n),
    'insert_function', coalesce('catchword.' || quote_ident(catchword.insert_function(p_collection, p_touch, p_n)), ''),
    'insert_trigger', seen_by || '_insert',
    'update_trigger', seen_by || '_update',
    'delete_trigger', seen_by || '_delete',
    'truncate_trigger', seen_by || '_truncate',
    'touch', format('''touch'', %L, %L || c.v, %s, %s, %s', split_part(p_collection, '$', 1),
                    catchword.relation_of_touch(p_touch) || '=', p_names ->> 'quick',
                    p_names ->> 'tag', p_names ->> 'traceparent'),
    'is_watched', p_touch ? 'watch',
    'one_text', case when catchword.is_one_text(to_regclass(p_touch ->> 'table'), p_touch) then '' else
      $v$set datestyle = 'ISO, YMD' set intervalstyle = 'postgres' set timezone = 'UTC' set bytea_output = 'hex'
set extra_float_digits = 3 set lc_monetary = 'C'$v$ end,
    'join_by_hash', case when p_touch ? 'watch' then 'set enable_nestloop = off' else '' end,
    'same_as_new', coalesce(same.as_new || format(' and record_image_eq(row(%s), row(%s))', w.r, w.n), 'false'),
    'same_as_old', coalesce(same.as_old || format(' and record_image_eq(row(%s), row(%s))', w.r, w.o), 'false'),
    'new_watched', w.new,
    'old_watched', w.old)
    from (select p_touch -> 'made', catchword.touch_owner(p_collection, p_touch),
                 format('catchword_%s_%s', split_part(p_collection, '$', 1), p_n)) as m (made, owner, seen_by),
         lateral (
           select case when made ? 'elements' then 'e.v::text'
                       when jsonb_array_length(made -> 'expressions') = 1
                       then format('(%s)::text', made -> 'expressions' ->> 0)
                       else (select format('case when %s then jsonb_build_array(%s)::text end',
                                           string_agg(e || ' is not null', ' and ' order by n),
                                           string_agg(e || '::text', ', ' order by n))
                               from jsonb_array_elements_text(made -> 'expressions') with ordinality as x (e, n)) end,
                  case when made ? 'elements'
                       then format(', lateral unnest(%s) as e (v)', made -> 'expressions' ->> 0) else '' end
         ) as v (value, elements),
         (select string_agg(format('r.%1$s %2$s n.%1$s', key.name, key.equals), ' and ' order by key.attnum),
                 string_agg(format('r.%1$s %2$s o.%1$s', key.name, key.equals), ' and ' order by key.attnum)
            from (select catchword.quoted(a.attname), catchword.equality(a.atttypid), a.attnum
                    from pg_attribute a
                   where a.attrelid = to_regclass(p_touch ->> 'table')
                     and a.attname = any(catchword.primary_key(a.attrelid))
                 ) as key (name, equals, attnum)) as same (as_new, as_old),
         (select string_agg('r.' || name, ', ' order by name), string_agg('n.' || name, ', ' order by name),
                 string_agg('o.' || name, ', ' order by name), string_agg('new.' || name, ', ' order by name),
                 string_agg('old.' || name, ', ' order by name)
            from (select catchword.quoted(jsonb_array_elements_text(p_touch -> 'watch'))
                  union select catchword.quoted(jsonb_array_elements_text(p_touch -> 'made' -> 'columns'))
                  -- another key is another row
                  union select catchword.quoted(unnest(catchword.primary_key(to_regclass(p_touch ->> 'table'))))
                 ) as t (name)
         ) as w (r, n, o, new, old)
$$;
comment on function catchword.touch_names is 'what the names in the templates stand for, of one related table';

create function catchword.touch_statements(p_names jsonb, p_touch jsonb) returns setof text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select catchword.fill(template, p_names) from (values
    (1, false, false, catchword.touch_template()),
    (2, false, true, catchword.touch_insert_template()),
    (3, false, true, 'create or replace trigger {insert_trigger} after insert on {related}
  referencing new table as new_rows for each statement execute function {insert_function}()'),
    (4, false, false, 'create or replace trigger {update_trigger} after update on {related}
  referencing old table as old_rows new table as new_rows for each statement execute function {touch_function}()'),
    (5, false, false, 'create or replace trigger {delete_trigger} after delete on {related}
  referencing old table as old_rows for each statement execute function {touch_function}()'),
    (6, false, false, 'create or replace trigger {truncate_trigger} before truncate on {related}
  for each statement execute function {touch_function}()'),
    (1, true, false, catchword.touch_row_template()),
    (2, true, true, 'create or replace trigger {insert_trigger} after insert on {related}
  for each row execute function {insert_function}()'),
    (3, true, false, 'create or replace trigger {update_trigger} after update on {related}
  for each row execute function {touch_function}()'),
    (4, true, false, 'create or replace trigger {delete_trigger} after delete on {related}
  for each row execute function {touch_function}()')) as statements (n, partitioned, of_inserts, template)
   where partitioned = p_touch -> 'made' ? 'partitions' and not (of_inserts and p_names ->> 'insert_function' = '')
  union all
  select catchword.fill('create or replace trigger {truncate_trigger} before truncate on {partition}
  for each statement execute function {touch_function}()', p_names || jsonb_build_object('partition', p.name))
    from jsonb_array_elements_text(p_touch -> 'made' -> 'partitions') as p (name)
$$;
comment on function catchword.touch_statements is 'the SQL for one related table, as text';

create function catchword.attach_statements(
  p_collection text, p_source regclass, p_key name[], p_revision text, p_watch text[], p_touches jsonb, p_delay integer,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path')),
  p_schema text default null, p_fair_by text default null
) returns setof text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  names constant jsonb := catchword.trigger_names(
    p_collection, p_source, p_key, p_revision, p_watch, p_delay, p_schema, p_fair_by);
  deleted constant jsonb := names || jsonb_build_object(
    'deleted_function', format('catchword.%I', p_collection || '_deleted'), 'rows', 'old_rows');
  truncated constant jsonb := names || catchword.truncated_names(p_collection, p_source, names);
  touches constant jsonb := catchword.resolve_touches(p_source, p_key, p_touches, p_path);
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

  if catchword.is_partitioned(p_source) then
    return query
      select catchword.fill(template, names || jsonb_build_object(
               'row_function', format('catchword.%I', p_collection || '_' || what), 'operation', operation,
               'row_trigger', catchword.trigger_name(p_collection, what)))
        from (values (1, 'inserted', 'insert'), (2, 'updated', 'update'), (3, 'deleted', 'delete')
             ) as t (n, what, operation),
             lateral (values (1, catchword.row_template()),
                             (2, 'create or replace trigger {row_trigger} after {operation} on {table}
  for each row execute function {row_function}()')) as s (m, template)
       order by n, m;
  else
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
  end if;

  return next catchword.fill(catchword.deleted_template(), truncated);
  return next catchword.truncate_statement(p_collection, p_source);

  return query
    select s from jsonb_array_elements(touches) with ordinality as e (touch, n),
                  catchword.touch_statements(catchword.touch_names(names, p_collection, touch, n), touch) as s;

  -- nobody may hang these functions on a table of their own and forge jobs with them
  return next (
    select format('revoke execute on function %s from public',
                  string_agg(format('catchword.%I()', name), ', ' order by name))
      from unnest(array(select p_collection || '_' || what
                          from unnest('{revision,inserted,updated,deleted,truncated}'::text[]) as what)
                  || array(select catchword.touch_owner(p_collection, touch) || '_touch_' || n
                             from jsonb_array_elements(touches) with ordinality as e (touch, n)
                           union
                           select catchword.insert_function(p_collection, touch, n)
                             from jsonb_array_elements(touches) with ordinality as e (touch, n)
                            where catchword.insert_function(p_collection, touch, n) is not null)) as s (name));
end $$;
comment on function catchword.attach_statements is 'the SQL that attaches a table, as text; attach runs it';

revoke execute on all functions in schema catchword from public;
