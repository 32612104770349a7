-- What may be attached, attaching and detaching it, and whether what was attached is still in place.

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

revoke execute on all functions in schema catchword from public;
