-- What may be attached, attaching and detaching it, and whether what was attached is still in place.

-- A table that cannot be attached is refused with a sentence and a hint. The parts of `check_source` come first.
create function catchword.check_names(
  p_collection text, p_key name[], p_revision text, p_watch text[], p_touches jsonb
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  found_name text;
begin
  if split_part(p_collection, '$', 1) !~ '^[a-z][a-z0-9_]{0,39}$' then
    perform catchword.refuse(format('%L cannot be the name of a collection', p_collection),
      'use a lower-case letter, then up to 39 letters, digits and underscores');
  end if;
  -- the triggers' functions are written between these
  select names.name into found_name
    from (select unnest(p_watch || p_key::text[] || p_revision)
          union all
          select jsonb_each_text.value from jsonb_array_elements(p_touches) t, jsonb_each_text(t - 'watch')
          union all
          select w from jsonb_array_elements(p_touches) t, jsonb_array_elements_text(t -> 'watch') w) as names (name)
   where names.name ~ '[$]f[$]|\x01' limit 1;
  if found then
    perform catchword.refuse(
      format('the column %I has %s in its name', found_name,
             case when position('$f$' in found_name) > 0 then '$f$' else 'a control character' end), 'rename it');
  end if;
end $$;
comment on function catchword.check_names is 'refuses names that a collection or its columns cannot have';

create function catchword.check_table(p_source regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  rel pg_class;
  part record;
begin
  select * into rel from pg_class where oid = p_source;
  if rel.relispartition then
    perform catchword.refuse(format('%s is a partition', p_source),
      (select format('attach the table that it is a partition of: table = "%s"', catchword.full_name(i.inhparent))
         from pg_inherits i where i.inhrelid = p_source));
  elsif rel.relkind not in ('r', 'p') then
    perform catchword.refuse(format('%s is not a plain table', p_source),
      'name the table that holds the rows; views and foreign tables have no triggers that could be trusted');
  elsif rel.relpersistence <> 'p' then
    perform catchword.refuse(format('%s is temporary or unlogged: its rows do not survive a crash', p_source),
      'attach a permanent table');
  elsif rel.relkind = 'r' and exists (select from pg_inherits where inhrelid = p_source or inhparent = p_source) then
    perform catchword.refuse(
      format('%s inherits or is inherited from, and such tables cannot be attached yet', p_source),
      'attach a plain table');
  end if;
  select catchword.full_name(c.oid) as name, c.relkind, c.relpersistence, pg_get_userbyid(c.relowner) as owner into part
    from catchword.tree(p_source) t join pg_class c on c.oid = t.relation
   where c.relkind not in ('r', 'p') or c.relpersistence <> 'p' or not pg_has_role(current_user, c.relowner, 'usage')
   order by 1 limit 1;
  if not found or rel.relkind = 'r' then
    return;
  elsif part.relkind not in ('r', 'p') then
    perform catchword.refuse(format('the partition %s is not a plain table', part.name),
      'a foreign table has no triggers that could be trusted: detach it, and attach a table that holds its rows');
  elsif part.relpersistence <> 'p' then
    perform catchword.refuse(format('the partition %s is unlogged: its rows do not survive a crash', part.name),
      format('run "alter table %s set logged"', part.name));
  else
    perform catchword.refuse(format('the partition %s belongs to %s, and gets a trigger', part.name, part.owner),
      format('run "alter table %s owner to %I"', part.name, current_user));
  end if;
end $$;
comment on function catchword.check_table is 'refuses a table that cannot be attached, or a partition of it';

create function catchword.check_key_column(p_source regclass, p_key name) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  att pg_attribute;
begin
  select * into att from pg_attribute
   where attrelid = p_source and attname = p_key and attnum > 0 and not attisdropped;
  if not found then
    perform catchword.refuse(format('%s has no column %I', p_source, p_key),
      'correct key = "…"; a name with capitals is quoted, as in SQL: key = ''"Id"''');
  elsif catchword.key_type(att.atttypid) is null then
    perform catchword.refuse(
      format('the key %s.%I is of type %s', p_source, p_key, format_type(att.atttypid, att.atttypmod)),
      'a key is of type uuid, bigint, integer, smallint, text, varchar, char, citext, numeric or date, '
      'or a domain over one of these: name another unique column');
  elsif not att.attnotnull then
    perform catchword.refuse(format('the key %s.%I may be null', p_source, p_key),
      format('run "alter table %1$s alter column %2$I set not null"; on a large table first "alter table %1$s add '
             'check (%2$I is not null) not valid" and validate it, so that nobody waits while it is read',
             p_source, p_key));
  elsif exists (select from pg_collation where oid = att.attcollation and not collisdeterministic) then
    perform catchword.refuse(
      format('the key %s.%I has a nondeterministic collation: different texts would be one key', p_source, p_key),
      'give the key a deterministic collation');
  end if;
end $$;
comment on function catchword.check_key_column is 'refuses a column that cannot be a part of a key';

-- Pages of keys are read in the order of the key's columns, so the unique index has them in just that order.
create function catchword.check_key(p_source regclass, p_key name[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  columns constant text := (select string_agg(quote_ident(k), ', ' order by n)
                              from unnest(p_key) with ordinality as c (k, n));
  said constant text := format(case cardinality(p_key) when 1 then '%s.%s' else '%s (%s)' end, p_source, columns);
  numbers constant smallint[] := array(
    select a.attnum from unnest(p_key) with ordinality as c (k, n)
      join pg_attribute a on a.attrelid = p_source and a.attname = c.k order by c.n);
  other_order text;
  wider text;
begin
  if cardinality(p_key) not between 1 and 8 or cardinality(p_key) > (select count(distinct k) from unnest(p_key) as k)
  then
    perform catchword.refuse('a key has from one to eight columns, each once', 'correct key = […]');
  end if;
  perform catchword.check_key_column(p_source, k) from unnest(p_key) as k;
  if exists (select from pg_index i
              where i.indrelid = p_source and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null
                and (i.indkey::smallint[])[0:i.indnkeyatts - 1] = numbers) then
    return;
  end if;
  select max(case when i.indnkeyatts = cardinality(numbers) then found.names end), max(found.names)
    into other_order, wider
    from pg_index i
   cross join lateral (
     select string_agg(format('"%s"', a.attname), ', ' order by k.n)
       from unnest((i.indkey::smallint[])[0:i.indnkeyatts - 1]) with ordinality as k (attnum, n)
       join pg_attribute a on a.attrelid = p_source and a.attnum = k.attnum) as found (names)
   where i.indrelid = p_source and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null
     and (i.indkey::smallint[])[0:i.indnkeyatts - 1] @> numbers;
  if other_order is not null then
    perform catchword.refuse(
      format('the key %s is unique in another order, and pages of keys are read in that order', said),
      format('write key = [%s]', other_order));
  elsif wider is not null then
    perform catchword.refuse(format('the key %s is unique together with other columns only', said),
      format('write key = [%s]; the view then returns these columns under their own names', wider));
  end if;
  perform catchword.refuse(format('the key %s is not unique', said),
    format('name a column that is, or several that are together; or, if no two rows may ever have the same value, run '
           '"create unique index concurrently on %s (%s)", not deferrable and for all rows', p_source, columns));
end $$;
comment on function catchword.check_key is 'refuses a key that does not name one row each';

-- BEFORE triggers fire in the order of their names, compared byte by byte. A later one could wait while our number
-- grows old. Another collection's on the same table only draws a number too.
create function catchword.later_triggers(p_source regclass, p_collection text)
returns table (name name, ours text)
language sql stable set search_path = pg_catalog, pg_temp as $$
  with fired as (
    select distinct t.tgname, p.pronamespace = 'catchword'::regnamespace as ours
      from pg_trigger t join pg_proc p on p.oid = t.tgfoid
     where t.tgrelid in (select relation from catchword.tree(p_source)) and not t.tgisinternal
       and t.tgtype & 1 = 1 and t.tgtype & 2 = 2 and t.tgtype & (4 | 16) <> 0
  ),
  first_of_ours (name) as (
    select min(o.name collate "C")
      from (select tgname::text from fired where ours
            union all select catchword.trigger_name(p_collection, 'revision')) as o (name)
  )
  select f.tgname, o.name from fired f, first_of_ours o where not f.ours and f.tgname::text > o.name collate "C"
   order by f.tgname
$$;
comment on function catchword.later_triggers is 'triggers of a table that fire between ours and the write of a row';

create function catchword.check_revision(p_collection text, p_source regclass, p_revision text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  att pg_attribute;
  other text;
  later record;
begin
  select split_part(name, '$', 1) into other from catchword.collection
   where source = p_source and revision_column = p_revision and name <> p_collection;
  if found then
    perform catchword.refuse(format('%s.%I is the revision of collection %s already', p_source, p_revision, other),
      format('each collection on a table has a column of its own: write revision = "catchword_revision_%s", '
             'and let its view select that column as revision', p_collection));
  end if;
  select * into att from pg_attribute
   where attrelid = p_source and attname = p_revision and attnum > 0 and not attisdropped;
  if found then
    if coalesce(col_description(p_source, att.attnum), '') not like 'catchword%' then
      perform catchword.refuse(format('%s has a column %I that catchword did not make', p_source, p_revision),
        format('choose another name with revision = "…"; if it is meant for catchword, which then overwrites what is '
               'in it, say so: comment on column %s.%I is ''catchword: revision''', p_source, p_revision));
    elsif att.atttypid <> 'bigint'::regtype or att.attnotnull or att.atthasdef
          or att.attgenerated <> '' or att.attidentity <> '' then
      perform catchword.refuse(format('the column %s.%I is not what catchword needs', p_source, p_revision),
        'it must be bigint, nullable, with no default: drop it, and catchword migrate makes it');
    end if;
  end if;
  select l.name, l.ours into later from catchword.later_triggers(p_source, p_collection) as l limit 1;
  if found then
    perform catchword.refuse(format('the trigger %I on %s fires after %s', later.name, p_source, later.ours),
      format('BEFORE ROW triggers fire in the order of their names, and ours must be last: '
             'alter trigger %I on %s rename to "…"', later.name, p_source));
  end if;
end $$;
comment on function catchword.check_revision
  is 'refuses a column that is not ours or is another collection''s, and a trigger that fires after ours';

create function catchword.check_watch(p_source regclass, p_watch text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  watched text;
begin
  foreach watched in array p_watch loop
    if not catchword.has_column(p_source, watched) then
      perform catchword.refuse(format('%s has no column %I', p_source, watched), 'correct watch = […]');
    elsif exists (select from pg_attribute where attrelid = p_source and attname = watched and attgenerated <> '') then
      perform catchword.refuse(format('%s.%I is generated, and cannot be watched', p_source, watched),
        'watch the columns it is generated from');
    end if;
  end loop;
end $$;
comment on function catchword.check_watch is 'refuses columns that cannot be watched';

create function catchword.check_fair_by(p_source regclass, p_fair_by text, p_schema text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_fair_by is null or p_fair_by = 'schema' and p_schema is not null then
    return;
  elsif not catchword.has_column(p_source, p_fair_by) then
    perform catchword.refuse(format('%s has no column %I', p_source, p_fair_by),
      'write fair_by = "…" with the column that names the tenant of a row');
  elsif exists (select from pg_attribute
                 where attrelid = p_source and attname = p_fair_by and attgenerated not in ('', 's')) then
    -- a trigger sees null there, so all tenants would have one lane
    perform catchword.refuse(format('the column %I of %s is generated when it is read', p_fair_by, p_source),
      'write fair_by = "…" with a column that is stored');
  end if;
end $$;
comment on function catchword.check_fair_by is 'refuses a column of tenants that is not there, or that no trigger sees';

create function catchword.is_text(p_type oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select typcategory = 'S' from pg_type where oid = p_type
$$;
comment on function catchword.is_text is 'is a type one of texts, or a domain over one?';

-- Can a value of one type be one of the other? They meet as text, so a text can be anything.
create function catchword.can_meet(p_one oid, p_other oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select a.base = b.base or a.typcategory = 'S' or b.typcategory = 'S'
         or a.typcategory = b.typcategory and a.typcategory in ('N', 'D')
    from (select coalesce(nullif(typbasetype, 0), oid), typcategory from pg_type where oid = p_one) as a (base),
         (select coalesce(nullif(typbasetype, 0), oid), typcategory from pg_type where oid = p_other) as b (base)
$$;
comment on function catchword.can_meet is 'can a value of one type be equal to one of another?';

create function catchword.check_related(p_source regclass, p_touch jsonb, p_path text) returns regclass
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  said constant text := p_touch ->> 'table';
  related constant regclass := catchword.named(said, p_path);
  rel pg_class;
  missing text;
begin
  if related is null then
    perform catchword.refuse(format('the related table %s does not exist', said),
      'correct touches = [{ table = "…" }]');
  end if;
  select * into rel from pg_class where oid = related;
  if rel.relispartition then
    perform catchword.refuse(format('the related table %s is a partition', said),
      format('name the whole table in touches: %s',
             (select inhparent::regclass from pg_inherits where inhrelid = related)));
  elsif rel.relkind not in ('r', 'p') then
    perform catchword.refuse(format('the related table %s is not a plain table', said),
      'name a table that holds rows in touches');
  elsif rel.relkind = 'r' and exists (select from pg_inherits where related in (inhrelid, inhparent)) then
    perform catchword.refuse(format('the related table %s inherits or is inherited from', said),
      'name a plain table in touches');
  end if;
  select c.name into missing
    from unnest(catchword.names_in(p_touch -> 'column')) as c (name)
   where not catchword.has_column(related, c.name) limit 1;
  if found then
    perform catchword.refuse(format('the related table %s has no column %I', said, missing),
      'correct touches = [{ column = "…" }]');
  end if;
  select w into missing from jsonb_array_elements_text(p_touch -> 'watch') w
   where not catchword.has_column(related, w) limit 1;
  if found then
    perform catchword.refuse(format('the related table %s has no column %I', said, missing),
      'correct touches = [{ watch = ["…"] }]');
  elsif p_touch ? 'watch' and rel.relkind = 'r'
        and not exists (select from pg_index
                         where indrelid = related and indisprimary and indisvalid and indimmediate) then
    perform catchword.refuse(
      format('the related table %s has no primary key, '
             'and without one the old and the new row cannot be told to be the same', said),
      'give it a primary key that is not deferrable, or leave watch out: then each of its updates touches');
  end if;
  return related;
end $$;
comment on function catchword.check_related is 'the related table of a touch; refuses one that cannot be watched';

-- Whatever Postgres says of an expression or a query when it is tried is the reason.
create function catchword.try_touch(p_source regclass, p_key name[], p_touch jsonb, p_path text) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  why text;
  more text;
  place text;
begin
  return catchword.make_touch(p_source, p_key, p_touch, p_path);
exception
  when insufficient_privilege or lock_not_available or query_canceled then
    raise;
  when others then
    get stacked diagnostics why = message_text, more = pg_exception_detail, place = pg_exception_context;
    why := concat_ws(', and ', regexp_replace(
             regexp_replace(why, ' in check constraints?$', ''),
             'return type mismatch in function declared to return (.*)$', 'the key is of type \1'),
             nullif(lower(left(more, 1)) || rtrim(substr(more, 2), '.'), ''));
    if position('catchword.read_query' in place) > 0 then
      perform catchword.refuse(format('keys of the related table %s cannot be used: %s', p_touch ->> 'table', why),
        'write a plain select of one column, the key''s, with $1 for the values that changed: '
        'keys = "select post_id from post_tag where tag_id = any($1)"');
    end if;
    perform catchword.refuse(format('value of the related table %s cannot be used: %s', p_touch ->> 'table', why),
      'write an expression over one row of that table, without a query in it, and functions that are not '
      'Postgres'' own with their schema');
end $$;
comment on function catchword.try_touch is 'what is made of an entry of touches; refuses one that Postgres refuses';

create function catchword.check_touch(p_source regclass, p_key name[], p_touch jsonb, p_path text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  said constant text := p_touch ->> 'table';
  related constant regclass := catchword.check_related(p_source, p_touch, p_path);
  columns constant text[] := catchword.names_in(p_touch -> 'column');
  row_columns constant text[] := catchword.names_in(p_touch -> 'row_column');
  made jsonb;
  problem text;
  pair record;
begin
  if p_touch ? 'column' = p_touch ? 'value' then
    perform catchword.refuse(format('a touch of %s says column and value, or neither', said),
      'write one of them: column = "…" is a column of that table, value = "…" is an expression over its row');
  elsif p_touch ? 'row_column' = p_touch ? 'keys' then
    perform catchword.refuse(format('a touch of %s says row_column and keys, or neither', said),
      format('write one of them: row_column = "…" is a column of %s, keys = "select …" finds the keys', p_source));
  elsif p_touch ? 'row_column' and cardinality(row_columns) <> greatest(cardinality(columns), 1) then
    perform catchword.refuse(
      format('a touch of %s has %s of column and %s of row_column', said, cardinality(columns),
             cardinality(row_columns)),
      'name as many columns on one side as on the other, in the same order');
  end if;
  select c.name into problem from unnest(row_columns) as c (name)
   where not catchword.has_column(p_source, c.name) limit 1;
  if found then
    perform catchword.refuse(format('%s has no column %I', p_source, problem),
      'correct touches = [{ row_column = "…" }]');
  end if;

  made := catchword.try_touch(
    p_source, p_key, jsonb_set(p_touch, '{table}', to_jsonb(catchword.full_name(related))), p_path);
  if not made ? 'columns' or made -> 'columns' = '[]' then
    perform catchword.refuse(format('value of the related table %s is the same for all its rows', said),
      'write an expression that reads at least one column of it');
  end if;
  select a.attname into problem from pg_attribute a
   where a.attrelid = related and to_jsonb(a)->>'attgenerated' = 'v'
     and (made -> 'columns' ? a.attname or p_touch -> 'watch' ? a.attname) limit 1;
  if found then
    perform catchword.refuse(format('%s.%I is computed when it is read, and a trigger cannot see it', said, problem),
      'name the columns that it is computed from, in value and watch');
  end if;
  for pair in
    select mine.attname as row_column, mine.atttypid as row_type, related_type.oid as value_type, a.n,
           catchword.element_type(mine.atttypid) as row_element, cardinality(row_columns) > 1 as in_a_list
      from unnest(row_columns) with ordinality as a (name, n)
      join pg_attribute mine on mine.attrelid = p_source and mine.attname = a.name
      join lateral (select to_regtype(made -> 'types' ->> (a.n - 1)::integer)::oid) as related_type (oid) on true
  loop
    if pair.in_a_list and (pair.row_element is not null or made ? 'elements') then
      perform catchword.refuse(format('a touch of %s has an array in a list of columns', said),
        'name an array as the only column, or find the keys by a query: keys = "select …"');
    elsif not catchword.can_meet(coalesce(pair.row_element, pair.row_type), pair.value_type) then
      perform catchword.refuse(
        format('%s.%I is of type %s, and what %s is found by is of type %s: they are never equal', p_source,
               pair.row_column, format_type(coalesce(pair.row_element, pair.row_type), null), said,
               format_type(pair.value_type, null)),
        'correct touches, or convert the value: value = "…::text"');
    elsif catchword.is_text(pair.value_type)
          and not catchword.is_text(coalesce(pair.row_element, pair.row_type)) then
      perform catchword.refuse(
        format('%s.%I is of type %s, and what %s is found by is of type %s: a text that is none could not be followed',
               p_source, pair.row_column, format_type(coalesce(pair.row_element, pair.row_type), null), said,
               format_type(pair.value_type, null)),
        format('convert the value: value = "…::%s"',
               format_type(coalesce(pair.row_element, pair.row_type), null)));
    end if;
  end loop;
  if cardinality(columns) > 1 and exists (
       select from pg_attribute a
        where a.attrelid = related and a.attname = any(columns) and catchword.element_type(a.atttypid) is not null) then
    perform catchword.refuse(format('a touch of %s has an array in a list of columns', said),
      'name an array as the only column');
  end if;
end $$;
comment on function catchword.check_touch is 'refuses an entry of touches that cannot be followed';

create function catchword.check_source(
  p_collection text, p_source regclass, p_key name[], p_revision text, p_watch text[], p_touches jsonb,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  many constant text := (select definition from catchword.collection
                          where name = p_collection and schemas is not null);
begin
  if many is not null then
    perform catchword.refuse(format('collection %s is attached to many schemas, %s', p_collection, many),
      format('choose another name; or run: catchword detach %s, catchword migrate, catchword reindex %1$s --all, '
             'catchword audit %1$s --repair', p_collection));
  end if;
  perform catchword.check_names(p_collection, p_key, p_revision, p_watch, p_touches);
  perform catchword.check_table(p_source);
  perform catchword.check_key(p_source, p_key);
  perform catchword.check_revision(p_collection, p_source, p_revision);
  perform catchword.check_watch(p_source, p_watch);
  perform catchword.check_touch(p_source, p_key, touch, p_path) from jsonb_array_elements(p_touches) as touch;
end $$;
comment on function catchword.check_source is 'refuses a table that cannot be attached, with a sentence and a hint';

create function catchword.check_unwatched(p_unwatched text[], p_path text) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  missing text;
begin
  select u.name into missing from unnest(p_unwatched) as u (name) where catchword.named(u.name, p_path) is null limit 1;
  if found then
    perform catchword.refuse(format('the table %s does not exist', missing), 'correct unwatched = […]');
  end if;
  return array(
    select catchword.full_name(catchword.named(u.name, p_path)) from unnest(p_unwatched) as u (name) order by 1);
end $$;
comment on function catchword.check_unwatched
  is 'the full names of tables that are waived; refuses one that is not there';

create function catchword.check_view(p_view text, p_source regclass, p_key name[], p_revision text, p_path text)
returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  view constant regclass := catchword.named(p_view, p_path);
begin
  if view is null then
    perform catchword.refuse(format('the view %s does not exist', p_view),
      format('in a migration of your own: alter table %1$s add column if not exists %2$I bigint; '
             'comment on column %1$s.%2$I is ''catchword: revision''; create view %3$s as select %4$s, '
             '%2$I as revision, json_build_object(…) as body from %1$s', p_source, p_revision, p_view,
             case cardinality(p_key) when 1 then format('%I as key', p_key[1])
               else (select string_agg(quote_ident(k), ', ' order by n)
                       from unnest(p_key) with ordinality as c (k, n)) end));
  end if;
  return catchword.full_name(view);
end $$;
comment on function catchword.check_view is 'the full name of a view; refuses one that is not there';

-- A column `id` of type text is the id of the document, unless it is a part of the key.
create function catchword.has_ids(p_view text, p_key name[]) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select (cardinality(p_key) = 1 or 'id' <> all(p_key))
     and exists (select from pg_attribute a
                  where a.attrelid = to_regclass(p_view) and a.attname = 'id' and a.attnum > 0 and not a.attisdropped
                    and a.atttypid = 'text'::regtype)
$$;
comment on function catchword.has_ids is 'does a view say which ids its documents have?';

-- A row that a policy hides would look deleted. So every reader must see all rows: the worker, whoever the triggers'
-- functions belong to, and the roles as which the view reads. Our sessions have row_security off, and there a policy is
-- an error; in an application's session, where a truncate reads the table, it would hide rows without a word.
create function catchword.sees_all(p_role oid, p_table oid) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select not c.relrowsecurity or r.rolsuper or r.rolbypassrls
         or not c.relforcerowsecurity and pg_has_role(r.oid, c.relowner, 'usage')
    from pg_class c, pg_roles r where c.oid = p_table and r.oid = p_role
$$;
comment on function catchword.sees_all is 'does no policy of a table apply to this role?';

-- A view reads as its owner, whoever asks; with security_invoker as who asks, also below another view. So does a
-- function, unless it is security definer.
create function catchword.secured_reads(p_view text, p_reader oid)
returns table (relation oid, role oid, whose text, owned text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with below as materialized (select distinct class, object from catchword.below(p_view)),
  views as (
    select v.oid, v.relowner, catchword.full_name(v.oid) as name,
           exists (select from pg_options_to_table(v.reloptions)
                    where option_name = 'security_invoker' and option_value::boolean) as invoker
      from below b join pg_class v on v.oid = b.object and v.relkind = 'v' where b.class = 'pg_class'::regclass
  ),
  reads (relation, role, whose, owned) as (
    select d.refobjid, case when v.invoker then p_reader else v.relowner end,
           format('as which the view %s reads it', v.name), case when not v.invoker then 'view ' || v.name end
      from views v
      join pg_rewrite w on w.ev_class = v.oid and w.ev_type = '1'
      join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = w.oid
                      and d.refclassid = 'pg_class'::regclass
    union
    select d.refobjid, case when p.prosecdef then p.proowner else p_reader end,
           format('as which the function %s reads it', p.oid::regprocedure),
           case when p.prosecdef then format('function %s', p.oid::regprocedure) end
      from below b
      join pg_proc p on p.oid = b.object
      join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass
     where b.class = 'pg_proc'::regclass
  )
  select r.relation, r.role, r.whose, r.owned from reads r join pg_class t on t.oid = r.relation and t.relrowsecurity
$$;
comment on function catchword.secured_reads
  is 'tables with row security that a view reads, as which role, and what is owned by that role';

create function catchword.security_problems(
  p_source regclass, p_touches jsonb, p_view text, p_owner oid, p_reader oid
) returns table (problem text)
language sql stable set search_path = pg_catalog, pg_temp as $$
  with secured (relation) as (
    -- most databases have none: then nothing is looked for
    select c.oid from pg_class c where c.relrowsecurity
  ),
  reads (relation, role, whose, owned) as (
    select p_source::oid, p_reader, 'which reads it', null
    union all
    select r.relation, p_owner, 'whose functions the triggers run', null
      from (select t.relation from catchword.tree(p_source) t
            union
            select to_regclass(t.value ->> 'table')::oid from jsonb_array_elements(p_touches) as t (value)
           ) as r (relation)
    union all
    select r.relation, r.role, r.whose, r.owned from catchword.secured_reads(p_view, p_reader) r
     where exists (select from secured)
  )
  select distinct on (t.oid, r.role)
         format('row security of %s applies to the role %s, %s, and a hidden row would look deleted; run "alter %s"',
                catchword.full_name(t.oid), quote_ident(pg_get_userbyid(r.role)), r.whose,
                -- never an application's role: what it owns may belong to whom the triggers belong
                case when r.owned is not null and r.role <> p_owner
                     then format('%s owner to %I', r.owned, pg_get_userbyid(p_owner))
                     else format('role %I bypassrls', pg_get_userbyid(r.role)) end)
    from reads r
    join secured on secured.relation = r.relation
    join pg_class t on t.oid = r.relation
   where not catchword.sees_all(r.role, t.oid)
   order by t.oid, r.role, r.owned
$$;
comment on function catchword.security_problems
  is 'policies that would hide rows from the view, from the triggers'' functions, or from who reads; no reader: null';

create function catchword.check_security(p_now catchword.collection) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  me constant oid := (select oid from pg_roles where rolname = current_user);
  found_problem text;
begin
  select problem into found_problem
    from catchword.security_problems(p_now.source, p_now.touches, p_now.view, me, me) limit 1;
  if found then
    perform catchword.refuse(split_part(found_problem, '; run "', 1),
      format('leave row security on, and run "%s', split_part(found_problem, '; run "', 2)));
  end if;
end $$;
comment on function catchword.check_security
  is 'refuses a policy that would hide rows from who attaches, or from the view';

-- Another view, key or list of columns: nobody knows what changed meanwhile.
create function catchword.same_documents(p_before catchword.collection, p_now catchword.collection) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select p_before.view = p_now.view and p_before.has_ids = p_now.has_ids
     and p_before.key_columns = p_now.key_columns
     and p_before.revision_column = p_now.revision_column and p_before.watch = p_now.watch
$$;
comment on function catchword.same_documents
  is 'are documents that were right as a collection was attached before right as it is attached now?';

-- A related table or a watched column of it more: its earlier changes were passed over, so some documents may be old.
-- Which ones, nobody knows. That is no reason to write all of them again at once: whoever runs it decides when.
create function catchword.same_touches(p_before jsonb, p_now jsonb) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select not exists (
    select from jsonb_array_elements(p_now) n
     where not exists (
       select from jsonb_array_elements(p_before) b
        where b - 'watch' - 'foreign_key' - 'made' = n - 'watch' - 'foreign_key' - 'made'
          and (not b ? 'watch' or coalesce(b -> 'watch' @> (n -> 'watch'), false))))
$$;
comment on function catchword.same_touches
  is 'did the touches before notice every change that these notice?';

-- Until the first document is written, none was built with another definition of the view than this one. Where touches
-- are new, no digest stands for the documents any more, until all of them are written again.
create function catchword.write_collection(p_now catchword.collection, p_kept boolean) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  insert into catchword.collection as c
    (name, member_of, schema, source, key_columns, key_types, revision_column, view, has_ids, floor, floor_view,
     filled_view, watch, touches, unwatched, scopes, period, delay_seconds, fair_by, definition)
  select p_now.name, p_now.member_of, p_now.schema, p_now.source, p_now.key_columns,
         catchword.key_types(p_now.source, p_now.key_columns), p_now.revision_column, p_now.view, p_now.has_ids,
         nextval('catchword.revision'), digest.now, digest.now,
         p_now.watch, p_now.touches, p_now.unwatched, p_now.scopes, p_now.period, p_now.delay_seconds, p_now.fair_by,
         p_now.definition
    from catchword.view_digest(p_now.view) as digest (now)
  on conflict (name) do update
    set source = excluded.source, key_columns = excluded.key_columns, key_types = excluded.key_types,
        revision_column = excluded.revision_column, view = excluded.view, has_ids = excluded.has_ids,
        watch = excluded.watch,
        touches = excluded.touches, unwatched = excluded.unwatched, scopes = excluded.scopes, period = excluded.period,
        delay_seconds = excluded.delay_seconds, fair_by = excluded.fair_by, definition = excluded.definition,
        attached_at = now(),
        floor = case when p_kept then c.floor else excluded.floor end,
        floor_view = case when not p_kept then excluded.floor_view
                          when catchword.same_touches(c.touches, excluded.touches) then c.floor_view end,
        filled_view = case when not p_kept or catchword.same_touches(c.touches, excluded.touches)
                           then c.filled_view end;
$$;
comment on function catchword.write_collection
  is 'writes down how a collection is attached; unless it is kept, its floor is raised';

-- The triggers are as they must be: only what they do not depend on is written. A label that an enum has got since is
-- kept too: from now on another name for it changes documents.
create function catchword.write_settings(p_now catchword.collection) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  update catchword.collection c
     set scopes = p_now.scopes, period = p_now.period, unwatched = p_now.unwatched, touches = p_now.touches,
         filled_view = case when catchword.same_view(c.filled_view, digest.now) then digest.now else c.filled_view end
    from catchword.view_digest(p_now.view) as digest (now)
   where c.name = p_now.name;
$$;
comment on function catchword.write_settings
  is 'writes down settings of a collection that its triggers do not depend on';

-- What Postgres made there when the partition came: another one, if it was detached and came back.
create function catchword.partitions_of(p_collection text, p_source regclass) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  select array(
    select format('%s:%s', t.relation, g.oid)
      from catchword.tree(p_source) t
      join pg_trigger g on g.tgrelid = t.relation and g.tgname = catchword.trigger_name(p_collection, 'revision')
     where t.leaf and catchword.is_partitioned(p_source)
     order by t.relation)
$$;
comment on function catchword.partitions_of
  is 'the partitions that hold rows, each with its trigger; of a plain table: none';

create function catchword.without_truncated(p_collection text, p_source regclass) returns setof oid
language sql stable set search_path = pg_catalog, pg_temp as $$
  select t.relation from catchword.tree(p_source) t
   where not exists (select from pg_trigger g
                      where g.tgrelid = t.relation and g.tgname = catchword.trigger_name(p_collection, 'truncated'))
   order by t.relation
$$;
comment on function catchword.without_truncated is 'partitions that nobody would see emptied';

create function catchword.complete_partitions(p_now catchword.collection) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  leaf oid;
begin
  for leaf in select * from catchword.without_truncated(p_now.name, p_now.source) loop
    execute catchword.truncate_statement(p_now.name, leaf);
  end loop;
end $$;
comment on function catchword.complete_partitions is 'makes the triggers that Postgres does not make on new partitions';

create function catchword.fits(p_source regclass, p_key name[], p_types text[]) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform catchword.check_key(p_source, p_key);
  return catchword.key_types(p_source, p_key) = coalesce(p_types, catchword.key_types(p_source, p_key));
exception when sqlstate 'CW001' then
  return false;
end $$;
comment on function catchword.fits is 'can this table have this key, of these types if they are known?';

-- A table in many schemas is one collection: one queue, one index, and a member for each schema. What all members have
-- in common is written down here as configured; `attach` then makes the members, each in a transaction of its own.
create function catchword.attach_whole(
  p_collection text, p_table text, p_key name[], p_view text,
  p_revision text default 'catchword_revision', p_watch text[] default '{}', p_touches jsonb default '[]',
  p_delay integer default 0, p_scopes jsonb default '{}', p_period text default null, p_unwatched text[] default '{}',
  p_fair_by text default null
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  known constant text[] := (select key_types from catchword.collection where name = p_collection);
  many constant text := catchword.schemas_of(p_table);
  schema text;
  source regclass;
  view text;
  types text[];
begin
  if not exists (select from catchword.matching(p_table)) then
    perform catchword.refuse(format('no schema has a table %s', p_table),
      'create one with your own migrations first, or correct table = "…"');
  elsif exists (select from catchword.collection where name = p_collection and schemas is null) then
    perform catchword.refuse(format('collection %s is attached to one table', p_collection),
      format('choose another name; or run: catchword detach %s, catchword migrate, catchword reindex %1$s --all, '
             'catchword audit %1$s --repair', p_collection));
  elsif 'schema' = any(p_key) then
    perform catchword.refuse('the key has a column schema, and the schema is a part of the key already',
      'leave it out of key = […]');
  end if;
  -- a schema that does not fit holds up nobody else: the first one that does is asked; if none does, the last
  for schema in select m from catchword.matching(p_table) as m loop
    source := to_regclass(catchword.in_schema(p_table, many, schema));
    view := catchword.in_schema(p_view, many, schema);
    exit when to_regclass(view) is not null and catchword.fits(source, p_key, known[2:]);
  end loop;
  perform catchword.check_key(source, p_key);
  types := 'text'::text || catchword.key_types(source, p_key);
  if known <> types then
    perform catchword.refuse(format('the key of collection %s was of other types', p_collection),
      format('run: catchword detach %s, catchword migrate, catchword reindex %1$s --all', p_collection));
  end if;
  insert into catchword.collection as c
    (name, schemas, key_columns, key_types, revision_column, view, has_ids, floor, watch, touches, unwatched, scopes,
     period, delay_seconds, fair_by, definition)
  values (p_collection, many, 'schema'::name || p_key, types, p_revision, p_view,
          catchword.has_ids(view, p_key), nextval('catchword.revision'), p_watch, p_touches, p_unwatched, p_scopes,
          p_period, p_delay, p_fair_by, p_table)
  on conflict (name) do update
    set schemas = excluded.schemas, key_columns = excluded.key_columns, revision_column = excluded.revision_column,
        view = excluded.view, watch = excluded.watch, touches = excluded.touches, unwatched = excluded.unwatched,
        scopes = excluded.scopes, period = excluded.period, delay_seconds = excluded.delay_seconds,
        fair_by = excluded.fair_by, definition = excluded.definition;
  update catchword.collection set floor_view = floor where name = p_collection and floor_view is null;
end $$;
comment on function catchword.attach_whole is 'writes down a collection over many schemas; attach makes its members';

create function catchword.member_name(p_collection text, p_schema text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(
    (select name from catchword.collection where member_of = p_collection and schema = p_schema),
    format('%s$%s', p_collection,
           (select coalesce(max(split_part(name, '$', 2)::integer), 0) + 1 from catchword.collection
             where member_of = p_collection)))
$$;
comment on function catchword.member_name is 'the name of a member, or the next free one';

-- One index holds the documents of all members, and one type reads all their keys.
create function catchword.check_member(p_whole catchword.collection, p_source regclass, p_key name[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  types constant text[] := catchword.key_types(p_source, p_key);
begin
  if 'text'::text || types <> p_whole.key_types then
    perform catchword.refuse(
      format('the key of %s is of type %s, and in other schemas of type %s', p_source, array_to_string(types, ', '),
             array_to_string(p_whole.key_types[2:], ', ')),
      'give it the same type in every schema');
  end if;
end $$;
comment on function catchword.check_member is 'refuses a table whose key is another one than in the other schemas';

-- Members whose table is gone, is in another schema now, or is not meant any more. Their documents are found by an
-- audit. Triggers that others share stay.
create function catchword.forget_members(p_collection text, p_schemas text[] default null) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  m catchword.collection;
  forgotten text[] := '{}';
begin
  for m in
    select c.* from catchword.collection c
      left join pg_class r on r.oid = c.source
      left join pg_namespace n on n.oid = r.relnamespace
     where c.member_of = p_collection
       and (n.nspname is distinct from c.schema or c.schema <> all(p_schemas))
     order by c.name
  loop
    perform catchword.drop_triggers(m.name);
    -- a worker changes no table
    if p_schemas is not null and exists (select from pg_class where oid = m.source) then
      begin
        execute format('alter table %s drop column if exists %I', m.source, m.revision_column);
      exception when dependent_objects_still_exist then
        -- its view uses it
        null;
      end;
    end if;
    delete from catchword.collection where name = m.name;
    insert into catchword.journal (what, collection, detail) values ('detach', p_collection, 'schema ' || m.schema);
    forgotten := forgotten || m.schema;
  end loop;
  if forgotten <> '{}' then
    perform catchword.ask_audit(p_collection, false, 'schemas');
  end if;
  return forgotten;
end $$;
comment on function catchword.forget_members
  is 'detaches the members whose table is gone; with a list of schemas, also those that are not in it';

create function catchword.attach(
  p_collection text, p_source regclass, p_key name[], p_view text,
  p_revision text default 'catchword_revision', p_watch text[] default '{}', p_touches jsonb default '[]',
  p_delay integer default 0, p_scopes jsonb default '{}', p_period text default null, p_unwatched text[] default '{}',
  p_fair_by text default null,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path')),
  p_schema text default null
) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  wanted catchword.collection;
  before catchword.collection;
  statements text[];
  statement text;
  intact boolean;
  kept boolean;
  whole catchword.collection;
  touches jsonb := p_touches;
begin
  wanted.name := p_collection;
  if p_schema is not null then
    select * into strict whole from catchword.collection where name = p_collection;
    wanted.name := catchword.member_name(p_collection, p_schema);
    wanted.member_of := p_collection;
    wanted.schema := p_schema;
    touches := catchword.touches_in(p_touches, whole.schemas, p_schema);
  end if;
  perform catchword.check_source(wanted.name, p_source, p_key, p_revision, p_watch, touches, p_path);
  perform catchword.check_fair_by(p_source, p_fair_by, p_schema);
  if p_schema is not null then
    perform catchword.check_member(whole, p_source, p_key);
  end if;
  wanted.source := p_source;
  wanted.key_columns := p_key;
  wanted.revision_column := p_revision;
  wanted.watch := p_watch;
  wanted.delay_seconds := p_delay;
  wanted.fair_by := p_fair_by;
  wanted.scopes := p_scopes;
  wanted.period := p_period;
  -- names are kept with their schema and quoted by Postgres: whoever reads them later may have another search_path
  wanted.touches := catchword.resolve_touches(p_source, p_key, touches, p_path);
  wanted.unwatched := catchword.check_unwatched(
    array(select catchword.in_schema(u, whole.schemas, p_schema) from unnest(p_unwatched) as u), p_path);
  wanted.view := catchword.check_view(
    catchword.in_schema(p_view, whole.schemas, p_schema), p_source, p_key, p_revision, p_path);
  wanted.has_ids := catchword.has_ids(wanted.view, p_key);
  perform catchword.check_security(wanted);
  -- two at once: the second waits here and then finds nothing to do
  perform from catchword.turn where what = 'attach' for update;
  statements := array(select * from catchword.attach_statements(
    wanted.name, p_source, p_key, p_revision, p_watch, touches, p_delay, p_path, p_schema, p_fair_by));
  -- the column's own statements are not part of the digest: they are only there the first time
  wanted.definition := md5(array_to_string(
    array(select s from unnest(statements) s where s not like 'alter table%' and s not like 'comment on%'), ';'));
  select * into before from catchword.collection where name = wanted.name;
  intact := before.name is not null and before.source = p_source
    and not exists (select from catchword.broken_triggers(wanted.name));

  if before.has_ids <> wanted.has_ids and coalesce(nullif(before.targets, '{}'), whole.targets) <> '{}' then
    perform catchword.refuse(
      format('the view %s has %s column id, and the documents of %s were written %s ids of their own', wanted.view,
             case when wanted.has_ids then 'a' else 'no' end, p_collection,
             case when wanted.has_ids then 'without' else 'with' end),
      format('undo that change of the view; to give all documents other ids, run: catchword detach %s, give the '
             'collection another index, catchword migrate, catchword reindex %1$s --all', p_collection));
  end if;
  if intact then
    perform catchword.note_partitions(wanted.name);
  end if;
  if intact and before.definition = wanted.definition and before.view = wanted.view then
    perform catchword.write_settings(wanted);
    return 'unchanged';
  end if;

  execute format('lock table %s in share row exclusive mode', p_source);
  if before.name is not null then
    perform catchword.drop_triggers(wanted.name);
  end if;
  foreach statement in array statements loop
    execute statement;
  end loop;
  -- tables that members shared, and do not any more
  perform catchword.drop_functions(format('^%s_touch_%s(_insert)?$', p_collection, e.n))
     from generate_series(1, 99) as e (n)
    where p_schema is not null and not coalesce(wanted.touches -> (e.n - 1) ? 'shared', false);
  -- triggers that were off, or another table: everything is stale
  kept := intact and catchword.same_documents(before, wanted);
  perform catchword.write_collection(wanted, kept);
  perform catchword.complete_partitions(wanted);
  update catchword.collection set partitions = catchword.partitions_of(wanted.name, p_source)
   where name = wanted.name;
  -- rows that are there already; the audit finds in the journal where they are no drift
  if p_schema is not null and before.name is null and whole.targets <> '{}' then
    perform catchword.ask_audit(p_collection, false, 'schemas');
    insert into catchword.journal (what, collection, detail) values ('attach', p_collection, 'schema ' || p_schema);
  else
    insert into catchword.journal (what, collection, detail) values ('attach', p_collection, p_source::text);
  end if;
  return case when before.name is null then 'attached' when kept then 'changed'
              when intact then 'attached again' else 'repaired' end;
end $$;
comment on function catchword.attach is 'makes a table a collection; repeating it changes nothing';

-- The floor is drawn under a lock that waits for writers: a number drawn earlier and committed later would hide behind
-- it.
create function catchword.raise_floor(p_collection text) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  table_name text;
  new_floor bigint;
begin
  perform from catchword.collection where name = p_collection;
  if not found then
    raise exception 'there is no collection %', p_collection;
  end if;
  for table_name in select catchword.full_name(source) from catchword.members(p_collection) loop
    execute format('lock table %s in share mode', table_name);
  end loop;
  new_floor := nextval('catchword.revision');
  update catchword.collection
     set floor = new_floor,
         floor_view = case when source is null then new_floor::text else catchword.view_digest(view) end
   where p_collection in (name, member_of);
  return new_floor;
end $$;
comment on function catchword.raise_floor
  is 'makes every document of a collection stale; reindex --all then writes them again';

-- By function, so that triggers of touches that are no longer configured go too.
create function catchword.drop_functions(p_names text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  t record;
begin
  for t in
    select g.tgname, g.tgrelid::regclass as relation
      from pg_trigger g join pg_proc p on p.oid = g.tgfoid
     where p.pronamespace = 'catchword'::regnamespace and not g.tgisinternal and p.proname ~ p_names
       -- one on a partition goes with the one that it was made from
       and g.tgparentid = 0
  loop
    execute format('drop trigger %I on %s', t.tgname, t.relation);
  end loop;
  for t in
    select p.oid::regprocedure as function from pg_proc p
     where p.pronamespace = 'catchword'::regnamespace and p.prorettype = 'trigger'::regtype and p.proname ~ p_names
  loop
    execute format('drop function %s', t.function);
  end loop;
end $$;
comment on function catchword.drop_functions is 'drops functions of triggers by their names, and the triggers first';

create function catchword.drop_triggers(p_collection text) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  -- of a whole those of its members too
  select catchword.drop_functions(
    '^' || replace(p_collection, '$', '[$]')
    || case when position('$' in p_collection) = 0 then '([$][0-9]+)?' else '' end
    || '_(revision|inserted|updated|deleted|truncated|touch_[0-9]+(_insert)?)$')
$$;
comment on function catchword.drop_triggers is 'drops the triggers of a collection and their functions';

create function catchword.detach(p_collection text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  m catchword.collection;
  members catchword.collection[];
  gone boolean := false;
  stays text;
begin
  select * into col from catchword.collection where name = p_collection;
  if not found then
    return 'not attached';
  end if;
  members := array(select c from catchword.collection c
                    where p_collection in (c.name, c.member_of) and c.schemas is null);
  perform catchword.drop_triggers(p_collection);
  delete from catchword.job where collection = p_collection;
  delete from catchword.dead_job where collection = p_collection;
  delete from catchword.record where collection = p_collection;
  delete from catchword.document_id where collection = p_collection;
  delete from catchword.pause where collection = p_collection;
  delete from catchword.freshness where collection = p_collection;
  delete from catchword.history where collection = p_collection;
  delete from catchword.history_mark where collection = p_collection;
  delete from catchword.collection where name = p_collection;
  insert into catchword.journal (what, collection, detail)
  values ('detach', p_collection, coalesce(col.source::text, col.definition));
  foreach m in array members loop
    -- not to_regclass: since 16 it takes a number for a name, and the name of a dropped table is its number
    if not exists (select from pg_catalog.pg_class where oid = m.source) then
      gone := true;
      continue;
    end if;
    begin
      execute format('alter table %s drop column if exists %I', m.source, m.revision_column);
    exception when dependent_objects_still_exist then
      stays := format('; %s.%I stays, because a view uses it', m.source, m.revision_column);
    end;
  end loop;
  return 'detached' || coalesce(stays, case when gone then '; its table was gone' end, '');
end $$;
comment on function catchword.detach
  is 'undoes attach: triggers, jobs, dead letters, records, history and, if nothing uses it, the column';

-- Whether everything that a collection rests on is still there. No row: all is well. Its parts come first. `rows 1`:
-- where a function promises a thousand rows, as it does without a word, Postgres reads the whole catalog to join them.

-- `type` is pg_trigger.tgtype: row 1, before 2, insert 4, delete 8, update 16, truncate 32.
create function catchword.trigger_problems(p_collection text) returns table (problem text, member text)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  with wanted as (
    select c.name as member, c.source::oid as relation, catchword.trigger_name(c.name, t.what) as name, t.type,
           format('catchword.%I', c.name || '_' || t.what) as function
      from catchword.members(p_collection) c,
           lateral (select catchword.is_partitioned(c.source)::integer) as r (for_each_row),
           lateral (values ('revision', 23), ('inserted', 4 + r.for_each_row), ('updated', 16 + r.for_each_row),
                           ('deleted', 8 + r.for_each_row), ('truncated', 34)) as t (what, type)
    union all
    -- one that is new gets it at the next tick
    select c.name, split_part(known, ':', 1)::oid, catchword.trigger_name(c.name, 'truncated'), 34,
           format('catchword.%I', c.name || '_truncated')
      from catchword.members(p_collection) c, unnest(c.partitions) as known
     where split_part(known, ':', 1)::oid in (select t.relation from catchword.tree(c.source) t)
    union all
    -- of a partitioned table those of a row, and what Postgres made of them for its partitions
    select c.name, to_regclass(touch.value ->> 'table')::oid,
           format('catchword_%s_%s%s', split_part(c.name, '$', 1), touch.n, o.op),
           o.type + case when touch.value -> 'made' ? 'partitions' and o.type <> 34 then 1 else 0 end,
           format('catchword.%I', s.function)
      from catchword.members(p_collection) c, jsonb_array_elements(c.touches) with ordinality as touch (value, n),
           (values ('_insert', 4), ('_update', 16), ('_delete', 8), ('_truncate', 34)) as o (op, type),
           lateral (select case when o.op = '_insert' then catchword.insert_function(c.name, touch.value, touch.n)
                                else catchword.touch_owner(c.name, touch.value) || '_touch_' || touch.n end
                   ) as s (function)
     where s.function is not null
  )
  select case when r.oid is null then format('a table that trigger %s belongs to is gone', w.name)
              when t.oid is null then format('trigger %s on %s is missing', w.name, r.oid::regclass)
              when t.tgenabled not in ('O', 'A') then format('trigger %s on %s is disabled', w.name, r.oid::regclass)
              else format('trigger %s on %s is not the one that catchword made', w.name, r.oid::regclass) end,
         w.member
    from wanted w
    left join pg_class r on r.oid = w.relation
    left join pg_trigger t on t.tgrelid = w.relation and t.tgname = w.name and not t.tgisinternal
   where r.oid is null or t.oid is null or t.tgenabled not in ('O', 'A')
      or t.tgfoid is distinct from to_regprocedure(w.function || '()')::oid or t.tgtype <> w.type
      or t.tgqual is not null or cardinality(t.tgattr::smallint[]) > 0
  union all
  select format('trigger %I on %s is disabled', t.tgname, t.tgrelid::regclass), w.member
    from wanted w
    join pg_trigger above on above.tgrelid = w.relation and above.tgname = w.name and above.tgtype & 1 = 1
    join lateral catchword.tree(w.relation) as p on p.relation <> w.relation
    join pg_trigger t on t.tgrelid = p.relation and t.tgfoid = above.tgfoid and t.tgtype = above.tgtype
   where t.tgenabled not in ('O', 'A')
  union all
  select format('trigger %I on %s fires after %s', later.name, c.source, later.ours), c.name
    from catchword.members(p_collection) c cross join lateral catchword.later_triggers(c.source, c.name) as later
$$;
comment on function catchword.trigger_problems is 'what is wrong with the triggers of a collection';

create function catchword.column_problems(p_collection text) returns table (problem text, member text)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  -- the triggers name the key's columns, so every write of the application fails until they are made again
  select case when a.attname is null
              then format('the key %s.%I is missing, and writes fail; correct key = "…"', c.source, k.name)
              else format('the key %s.%I is of type %s now, and was %s',
                          c.source, k.name, format_type(a.atttypid, null), k.type) end,
         c.name
    from catchword.members(p_collection) c join pg_class r on r.oid = c.source
    cross join unnest(c.key_columns, c.key_types) as k (name, type)
    left join pg_attribute a on a.attrelid = c.source and a.attname = k.name
                            and a.attnum > 0 and not a.attisdropped
   where catchword.key_type(a.atttypid) is distinct from k.type
  union all
  select format('the view %s does not return (%s, revision bigint, body)', c.view, wanted.columns), c.name
    from catchword.members(p_collection) c
   cross join lateral (
     select string_agg(format('%s %s', said.name, k.type), ', ' order by k.n),
            bool_and(catchword.key_type(a.atttypid) is not distinct from k.type)
       from unnest(c.key_columns, c.key_types) with ordinality as k (name, type, n)
      cross join lateral (select case cardinality(c.key_columns) when 1 then 'key' else k.name end) as said (name)
       left join pg_attribute a on a.attrelid = to_regclass(c.view) and a.attname = said.name and not a.attisdropped
     ) as wanted (columns, are_there)
   where to_regclass(c.view) is not null
     and not (wanted.are_there
              and (select count(*) from pg_attribute a
                    where a.attrelid = to_regclass(c.view) and a.attnum > 0 and not a.attisdropped
                      and (a.attname, format_type(a.atttypid, null))
                          in (('revision', 'bigint'), ('body', 'json'), ('body', 'jsonb'))) = 2)
  union all
  select format('the view %s has %s column id, and the documents were written %s ids of their own', c.view,
                case when c.has_ids then 'no' else 'a' end, case when c.has_ids then 'with' else 'without' end), c.name
    from catchword.members(p_collection) c
   where to_regclass(c.view) is not null
     and c.has_ids <> catchword.has_ids(c.view, c.key_columns)
  union all
  select format('the column %s.%I is missing', c.source, c.revision_column), c.name
    from catchword.members(p_collection) c join pg_class r on r.oid = c.source
   where not catchword.has_column(c.source, c.revision_column)
  union all
  -- until then every update of it counts
  select format('the watched column %s.%I is missing', c.source, w.name), c.name
    from catchword.members(p_collection) c join pg_class r on r.oid = c.source cross join unnest(c.watch) as w (name)
   where not catchword.has_column(c.source, w.name)
  union all
  select format('the column %s.%I that touches name is missing', n.relation, n.name), c.name
    from catchword.members(p_collection) c
   cross join jsonb_array_elements(c.touches) as t (touch)
   cross join lateral (select to_regclass(t.touch ->> 'table'),
                              jsonb_array_elements_text(t.touch -> 'made' -> 'columns')
                       union all select c.source, unnest(catchword.names_in(t.touch -> 'row_column'))
                       union all select to_regclass(t.touch ->> 'table'), jsonb_array_elements_text(t.touch -> 'watch')
                      ) as n (relation, name)
   where exists (select from pg_class r where r.oid = n.relation)
     and not catchword.has_column(n.relation, n.name)
$$;
comment on function catchword.column_problems is 'what is wrong with the columns and the view of a collection';

-- What became of a table after it was attached: statements that name another one write into it, and its triggers do
-- not fire.
create function catchword.table_problems(p_collection text) returns table (problem text, member text)
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select case when r.relispartition
              then format('%1$s is a partition now: what is written through %2$s leaves no jobs; '
                          'run "alter table %2$s detach partition %1$s"', r.oid::regclass, above.name)
              when above.name is not null
              then format('%1$s inherits from %2$s now: what is written through %2$s leaves no jobs; '
                          'run "alter table %1$s no inherit %2$s"', r.oid::regclass, above.name)
              when below.name is not null
              then format('%2$s inherits from %1$s now: its rows are seen in %1$s, and leave no jobs; '
                          'run "alter table %2$s no inherit %1$s"', r.oid::regclass, below.name)
              else format('%1$s is unlogged now: a crash empties it without a trace; '
                          'run "alter table %1$s set logged"', r.oid::regclass) end,
         w.member
    from (select c.source::oid, c.name from catchword.members(p_collection) c
          union
          select to_regclass(touch.value ->> 'table'), c.name
            from catchword.members(p_collection) c, jsonb_array_elements(c.touches) as touch (value)
         ) as w (relation, member)
    join pg_class r on r.oid = w.relation
    left join lateral (select i.inhparent::regclass from pg_inherits i where i.inhrelid = r.oid order by 1 limit 1
                      ) as above (name) on true
    left join lateral (select i.inhrelid::regclass from pg_inherits i
                        where i.inhparent = r.oid and r.relkind <> 'p' order by 1 limit 1) as below (name) on true
   where r.relispartition or r.relpersistence <> 'p' or above.name is not null or below.name is not null
  union all
  select format('the partition %2$s of %1$s is %3$s; run "alter table %4$s detach partition %2$s"', c.source,
                k.oid::regclass, case when k.relkind = 'r' then 'unlogged: a crash empties it without a trace'
                                      else 'not a plain table' end, i.inhparent::regclass), c.name
    from catchword.members(p_collection) c
   cross join lateral catchword.tree(c.source) as t
    join pg_class k on k.oid = t.relation
    join pg_inherits i on i.inhrelid = k.oid
   where catchword.is_partitioned(c.source)
     and (k.relkind not in ('r', 'p') or k.relpersistence <> 'p')
  union all
  -- while there was a foreign key, a new row of the related table could concern nobody, and its inserts have no trigger
  select format('the foreign key from %s.%s to %s is gone, and new rows of %3$s are passed over', c.source,
                (select string_agg(format('%I', name), ', ') from unnest(catchword.names_in(touch.value -> 'row_column')
                                                                        ) as name), touch.value ->> 'table'), c.name
    from catchword.members(p_collection) c, jsonb_array_elements(c.touches) as touch (value)
   where touch.value ? 'foreign_key'
     and case when exists (select from pg_constraint k
                            where k.conrelid = c.source and k.conname = touch.value ->> 'foreign_key'
                              and k.contype = 'f' and k.convalidated) then false
              -- it may only have another name
              else catchword.foreign_key(c.source, touch.value) is null end
$$;
comment on function catchword.table_problems is 'what is wrong with the tables of a collection';

-- The triggers' functions act with the rights of their owner.
create function catchword.right_problems(p_collection text) returns table (problem text, member text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp as $$
  select format('the role %s, whose functions the triggers run, may not %s %s, and writes fail; '
                'run first: grant %2$s on %3$s to %1$s',
                quote_ident(pg_get_userbyid(p.proowner)), needed.privilege, needed.object), c.name
    from catchword.members(p_collection) c
    join pg_proc p on p.oid = to_regprocedure(format('catchword.%I()', c.name || '_deleted'))
    cross join (values ('catchword.job', 'insert'), ('catchword.record', 'insert'), ('catchword.record', 'delete'),
                       ('catchword.record', 'select')) as needed (object, privilege)
   where not has_table_privilege(p.proowner, to_regclass(needed.object)::oid, needed.privilege)
  union all
  select format('the role %s, whose functions the triggers run, may not draw from catchword.revision, and writes fail; '
                'run first: grant usage on sequence catchword.revision to %1$s',
                quote_ident(pg_get_userbyid(p.proowner))), c.name
    from catchword.members(p_collection) c
    join pg_proc p on p.oid = to_regprocedure(format('catchword.%I()', c.name || '_revision'))
   where not (has_sequence_privilege(p.proowner, to_regclass('catchword.revision')::oid, 'usage')
              and has_schema_privilege(p.proowner, 'catchword', 'usage'))
$$;
comment on function catchword.right_problems is 'which rights the owner of a collection''s triggers lacks';

create function catchword.broken_triggers(p_collection text) returns table (problem text, member text)
language sql stable rows 1 set search_path = pg_catalog, pg_temp as $$
  select problem, member from catchword.trigger_problems(p_collection)
  union all
  select problem, member from catchword.column_problems(p_collection)
  union all
  select problem, member from catchword.table_problems(p_collection)
  union all
  select problem, member from catchword.right_problems(p_collection)
  union all
  select format('%s is not attached', p_collection), p_collection
   where not exists (select from catchword.collection where name = p_collection);
$$;
comment on function catchword.broken_triggers
  is 'what is wrong with the triggers, the columns and the view of a collection; no row: nothing';

revoke execute on all functions in schema catchword from public;
