-- Reindex schedules jobs and indexes nothing itself. One function makes the query for a scope; identifiers are quoted
-- here, values are bound.

create table catchword.reindex (
  id          bigint generated always as identity primary key,
  collection  text not null references catchword.collection (name) on delete cascade,
  scope       text,
  value       text,
  period_from timestamptz,
  period_to   timestamptz,
  keys        text[],
  hidden      boolean not null,
  rewrite     boolean not null,
  priority    integer not null,
  tag         text not null,
  base        timestamptz not null,
  view        text,
  cursor      text,
  scheduled   bigint not null default 0,
  started_at  timestamptz not null default now(),
  started_by  text not null default session_user,
  finished_at timestamptz
);
comment on table  catchword.reindex is 'each reindex and how far it came; an unfinished one can be resumed';
comment on column catchword.reindex.id is 'names it on the command line';
comment on column catchword.reindex.collection is 'what is reindexed';
comment on column catchword.reindex.scope is 'the scope''s name, if it has one';
comment on column catchword.reindex.value is 'the scope''s value';
comment on column catchword.reindex.period_from is 'beginning of the period, included';
comment on column catchword.reindex.period_to is 'end of the period, excluded';
comment on column catchword.reindex.keys is 'the keys that were named one by one';
comment on column catchword.reindex.hidden is 'also keys that the view does not return';
comment on column catchword.reindex.rewrite is 'write every document again, even where both sides agree';
comment on column catchword.reindex.priority is 'of its jobs: 100 part, 1000 whole';
comment on column catchword.reindex.tag is 'of its jobs';
comment on column catchword.reindex.base is 'enqueued_at of its first job; fixed once, so that bulks interleave';
comment on column catchword.reindex.view is 'everything: the collection''s floor_view when it began';
comment on column catchword.reindex.cursor is 'the last key scheduled';
comment on column catchword.reindex.scheduled is 'how many so far';
comment on column catchword.reindex.started_at is 'when it was asked for';
comment on column catchword.reindex.started_by is 'by whom';
comment on column catchword.reindex.finished_at is 'when its last job was scheduled';

create function catchword.reindex_column(p_collection catchword.collection, p_column text) returns pg_attribute
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  att pg_attribute;
begin
  select * into att from pg_attribute
   where attrelid = (select m.source from catchword.members(p_collection.name) as m limit 1)
     and attname = p_column and attnum > 0 and not attisdropped;
  if not found then
    perform catchword.refuse(
      format('table %s has no column %L any more', coalesce(p_collection.source::text, p_collection.definition),
             p_column),
      'correct the configuration, then run: catchword migrate');
  end if;
  return att;
end $$;
comment on function catchword.reindex_column is 'the column that a scope or a period names; refuses one that is gone';

create function catchword.of_schema(p_member catchword.collection, p_key text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_member.schema is null then ''
              else format(' and starts_with(%s, %L)', p_key, catchword.beginning_of(p_member)) end
$$;
comment on function catchword.of_schema is 'the condition in SQL under which a key is one of a member''s';

-- Of a collection, or of one member. It returns the key's text, and k1, k2, … to sort by. $1 value, $2 from, $3 to,
-- $4 keys, $5 cursor
create function catchword.reindex_query(r catchword.reindex, col catchword.collection) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  names constant jsonb := catchword.names_of(col);
  att pg_attribute;
  conditions text := '';
begin
  if r.keys is not null and r.hidden then
    -- keys named one by one are taken as they are, also where the row is gone
    return catchword.fill('select k.* from (select given.key, {values_of given.key} from unnest($4) as given (key)) as k
                            where ($5 is null or {k_after $5})', names)
           || catchword.of_schema(col, 'k.key');
  end if;
  if r.scope = 'schema' and col.schema is not null then
    -- the member itself
    null;
  elsif r.scope is not null then
    -- a column that is gone must not mean "no condition", which would be everything
    att := catchword.reindex_column(col, col.scopes ->> r.scope);
    -- -1 and not null: a null would make "character" of char(20), and that cuts the value to its first letter
    conditions := conditions || format(' and t.%I %s $1::%s',
      att.attname, catchword.equality(att.atttypid), format_type(att.atttypid, -1));
  end if;
  if r.period_from is not null then
    att := catchword.reindex_column(col, col.period);
    -- a column without a zone is read as UTC, whatever the session's zone
    conditions := conditions || format(' and t.%1$I >= $2%2$s and t.%1$I < $3%2$s', att.attname,
      case when att.atttypid = 'timestamptz'::regtype then '' else ' at time zone ''utc''' end);
  end if;
  if r.keys is not null then
    conditions := conditions || catchword.fill(' and {t_at $4}', names);
  end if;
  if not r.hidden then
    conditions := conditions || catchword.fill(' and exists (select from {view} v where {t_is_v})', names);
  elsif (r.scope is null or r.scope = 'schema' and col.schema is not null) and r.period_from is null then
    -- everything: also what is recorded, since a restore can leave the document of a deleted row alive
    return catchword.fill($t$
      select {t_key} as key, {t_as_k} from {rows} t where ($5 is null or {t_after $5})
      union
      select k.*
        from (select d.key, {values_of d.key}
                from (select case when {fits r.key} then r.key end as key
                        from catchword.record r where r.collection = {collection} offset 0) as d
               where d.key is not null) as k
       where ($5 is null or {k_after $5})$t$, names) || catchword.of_schema(col, 'k.key');
  end if;
  return catchword.fill(
    'select {t_key} as key, {t_as_k} from {rows} t where ($5 is null or {t_after $5})', names) || conditions;
end $$;
comment on function catchword.reindex_query is 'the query for the keys of a reindex';

-- Keys that are named one by one are taken as they are: their schema may be gone.
create function catchword.reindex_members(r catchword.reindex) returns setof catchword.collection
language sql stable set search_path = pg_catalog, pg_temp as $$
  select c.* from catchword.collection c where c.name = r.collection and r.keys is not null and r.hidden
  union all
  (select m.* from catchword.members_behind(r.collection, r.cursor) as m
    where (r.keys is null or not r.hidden)
      and (r.scope is distinct from 'schema' or m.schema is null or m.schema = r.value)
    order by m.schema collate "C")
$$;
comment on function catchword.reindex_members is 'the members that a reindex has still to come to; or the collection';

-- The next keys, of a few members at most: each that is read stays locked until the end. next_cursor is null: these are
-- the last.
create function catchword.reindex_keys(r catchword.reindex, p_limit integer, out keys text[], out next_cursor text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  m catchword.collection;
  here text[];
  seen integer := 0;
begin
  keys := '{}';
  for m in select * from catchword.reindex_members(r) loop
    if seen = 20 or cardinality(keys) >= p_limit then
      next_cursor := catchword.beginning_of(m);
      return;
    end if;
    -- in the order of the key's own type, which the cursor goes by: as text, 10 comes before 9
    execute format('select array(select picked.key from (%1$s order by %2$s limit $6) as picked order by %2$s)',
                   catchword.reindex_query(r, m),
                   (select string_agg('k' || n, ', ' order by n)
                      from generate_series(1, cardinality(m.key_columns) + (m.schema is not null)::integer) as n))
      into here
      using r.value, r.period_from, r.period_to, r.keys, catchword.behind_in(m, r.cursor), p_limit - cardinality(keys);
    keys := keys || here;
    if cardinality(keys) >= p_limit then
      next_cursor := keys[cardinality(keys)];
      return;
    end if;
    seen := seen + 1;
  end loop;
end $$;
comment on function catchword.reindex_keys
  is 'the next keys of a reindex, and where to go on; next_cursor is null: these are the last';

create function catchword.check_reindex(
  p_collection text, p_scope text, p_value text, p_from timestamptz, p_to timestamptz, p_keys text[]
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
begin
  select * into col from catchword.collection where name = p_collection;
  if not found then
    perform catchword.refuse(format('there is no collection %L', p_collection),
      coalesce('there is ' || (select string_agg(name, ', ' order by name) from catchword.collection),
               'attach one: catchword migrate'));
  elsif num_nonnulls(p_scope, coalesce(p_from, p_to), p_keys) > 1 then
    perform catchword.refuse('one scope, one period or one list of keys at a time', 'make several reindexes of it');
  elsif p_scope is not null and not col.scopes ? p_scope and (p_scope <> 'schema' or col.schemas is null) then
    perform catchword.refuse(format('collection %s has no scope %L', p_collection, p_scope),
      coalesce('it has ' || (select string_agg(s, ', ' order by s) from jsonb_object_keys(col.scopes) s), 'it has none')
      || '; a new one is written into the configuration, scopes = { user = "userid" }, and then: catchword migrate');
  elsif (p_scope is null) <> (p_value is null) then
    perform catchword.refuse('a scope goes with a value', 'give both');
  elsif (p_from is null) <> (p_to is null) or p_from >= p_to then
    perform catchword.refuse('a period has a beginning and a later end', 'give the earlier time first');
  elsif p_from is not null and col.period is null then
    perform catchword.refuse(format('collection %s has no period', p_collection),
      'name its column in the configuration, period = "updated", then run: catchword migrate');
  elsif p_keys is not null and cardinality(p_keys) = 0 then
    perform catchword.refuse('no key is named', 'name one at least');
  end if;
end $$;
comment on function catchword.check_reindex is 'refuses what cannot be asked for together, or is not configured';

-- A value that the column cannot hold is a mistake of whoever asked, and the refusal says so.
create function catchword.check_scope(p_collection catchword.collection, p_scope text, p_value text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  att pg_attribute;
  type_name text;
begin
  if p_scope = 'schema' and p_collection.schemas is not null then
    if not exists (select from catchword.members(p_collection.name) as m where m.schema = p_value) then
      perform catchword.refuse(format('collection %s has no schema %s', p_collection.name, p_value),
        'if it is new, run: catchword migrate');
    end if;
    return;
  end if;
  att := catchword.reindex_column(p_collection, p_collection.scopes ->> p_scope);
  type_name := format_type(att.atttypid, -1);
  execute format('select $1::%s', type_name) using p_value;
exception when data_exception then
  perform catchword.refuse(
    format('%L cannot be a value of %s: the column %I is of type %s', p_value, p_scope, att.attname, type_name),
    'write a value of that type');
end $$;
comment on function catchword.check_scope is 'refuses a value that is not of the type of a scope''s column';

create function catchword.check_period(p_collection catchword.collection) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  att constant pg_attribute := catchword.reindex_column(p_collection, p_collection.period);
begin
  if att.atttypid not in ('timestamptz'::regtype, 'timestamp'::regtype, 'date'::regtype) then
    perform catchword.refuse(format('the period %I is of type %s', att.attname, format_type(att.atttypid, -1)),
      'name a column of type timestamptz, timestamp or date in the configuration, then run: catchword migrate');
  end if;
end $$;
comment on function catchword.check_period is 'refuses a period whose column is no time';

create function catchword.reindex_start(
  p_collection text, p_scope text default null, p_value text default null,
  p_from timestamptz default null, p_to timestamptz default null, p_keys text[] default null,
  p_hidden boolean default false, p_rewrite boolean default false, p_tag text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  whole constant boolean := p_scope is null and p_from is null and p_keys is null;
  bulk_priority constant integer := case when whole then catchword.priority_whole() else catchword.priority_part() end;
  usual_tag constant text := 'reindex.' || coalesce(
    p_scope, case when p_keys is not null then 'ids' when p_from is not null then 'between' else 'all' end);
  canonical text[];
  new_id bigint;
begin
  perform catchword.check_reindex(p_collection, p_scope, p_value, p_from, p_to, p_keys);
  select * into strict col from catchword.collection where name = p_collection;
  if p_scope is not null then
    perform catchword.check_scope(col, p_scope, p_value);
  elsif p_from is not null then
    perform catchword.check_period(col);
  elsif p_keys is not null then
    canonical := array(select distinct k from unnest(catchword.canonical_keys(col, p_keys)) as k);
    if exists (select from unnest(canonical) as k where octet_length(k) not between 1 and 512) then
      perform catchword.refuse('a key has from 1 to 512 bytes', 'Elasticsearch takes no others; correct the key');
    end if;
  end if;

  if whole and p_rewrite then
    perform catchword.raise_floor(p_collection);
  end if;
  insert into catchword.reindex
    (collection, scope, value, period_from, period_to, keys, hidden, rewrite, priority, tag, base, view)
  values (p_collection, p_scope, p_value, p_from, p_to, canonical, p_hidden, p_rewrite, bulk_priority,
          left(coalesce(nullif(p_tag, ''), usual_tag), 100), catchword.bulk_base(p_collection, bulk_priority),
          (select floor_view from catchword.collection where whole and name = p_collection))
  returning id into new_id;
  return new_id;
end $$;
comment on function catchword.reindex_start
  is 'writes down what is to be reindexed; reindex_chunk then does it piece by piece';

create function catchword.reindex_count(p_id bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.reindex;
  m catchword.collection;
  here bigint;
  counted bigint := 0;
begin
  select * into strict r from catchword.reindex where id = p_id;
  for m in select * from catchword.reindex_members(r) loop
    execute format('select count(*) from (%s) as picked', catchword.reindex_query(r, m))
      into here using r.value, r.period_from, r.period_to, r.keys, catchword.behind_in(m, r.cursor);
    counted := counted + here;
  end loop;
  return counted;
end $$;
comment on function catchword.reindex_count is 'how many keys a reindex still has to schedule';

create function catchword.reindex_chunk(p_id bigint, p_limit integer default 10000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.reindex;
  picked_keys text[];
  goes_on text;
  picked bigint;
begin
  if p_limit is null or p_limit < 1 then
    perform catchword.refuse('a chunk has at least one key', 'give a number above 0');
  end if;
  -- two that resume the same reindex take turns
  select * into r from catchword.reindex where id = p_id for update;
  if not found then
    perform catchword.refuse(format('there is no reindex %s', p_id),
      'select id, collection, scope, value from catchword.reindex');
  elsif r.finished_at is not null then
    return 0;
  end if;
  select k.keys, k.next_cursor into picked_keys, goes_on from catchword.reindex_keys(r, p_limit) as k;
  picked := cardinality(picked_keys);
  if r.rewrite and r.priority < catchword.priority_whole() then
    -- a row that somebody holds is given its number in a moment
    perform catchword.touch_again(r.collection, catchword.rows_of(r.collection, array(
      select unnest(picked_keys) except select unnest(catchword.draw(r.collection, picked_keys)))));
  end if;
  -- also where there is no row: then its absence is what is looked at
  insert into catchword.job (collection, key, enqueued_at, priority, tag)
  select r.collection, k, r.base + (r.scheduled + n) * interval '1 microsecond', r.priority, r.tag
    from unnest(picked_keys) with ordinality as t (k, n) order by n;
  update catchword.reindex
     set scheduled = scheduled + picked, cursor = coalesce(goes_on, picked_keys[picked], cursor),
         finished_at = case when goes_on is null then now() end
   where id = p_id;
  if goes_on is null then
    -- every document is now at the floor at least, or has a job: none is left of an older definition of the view
    update catchword.collection set filled_view = r.view
     where name = r.collection and source is not null and r.view is not null and filled_view is distinct from r.view;
    -- of members, unless the floor was raised again meanwhile
    update catchword.collection m set filled_view = m.floor_view
      from catchword.collection w
     where w.name = r.collection and w.floor_view = r.view and m.member_of = w.name
       and m.filled_view is distinct from m.floor_view;
    insert into catchword.journal (who, what, collection, detail, count)
    values (r.started_by, 'reindex', r.collection,
            concat_ws(' ', r.tag, r.value, case when r.rewrite then 'rewrite' end), r.scheduled + picked);
  end if;
  return picked;
end $$;
comment on function catchword.reindex_chunk
  is 'schedules the next keys of a reindex; finished_at is then set, if these were the last';

create function catchword.reindex(
  p_collection text, p_scope text default null, p_value text default null,
  p_from timestamptz default null, p_to timestamptz default null, p_keys text[] default null,
  p_hidden boolean default false, p_rewrite boolean default false, p_tag text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  new_id bigint;
  total bigint;
begin
  new_id := catchword.reindex_start(p_collection, p_scope, p_value, p_from, p_to, p_keys, p_hidden, p_rewrite, p_tag);
  while catchword.reindex_goes_on(new_id, 10000) loop
    null;
  end loop;
  select scheduled into total from catchword.reindex where id = new_id;
  return total;
end $$;
comment on function catchword.reindex
  is 'schedules a scope in the caller''s one transaction; for large ones: reindex_start, then call run_reindex';

create function catchword.reindex_goes_on(p_id bigint, p_chunk integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- rows that draw a number are locked until the commit, and their writers wait: fewer at a time
  size constant integer := coalesce(
    p_chunk,
    (select case when rewrite and priority < catchword.priority_whole() then 2500 else 10000 end
       from catchword.reindex where id = p_id),
    1);
begin
  perform catchword.reindex_chunk(p_id, size);
  return exists (select from catchword.reindex where id = p_id and finished_at is null);
end $$;
comment on function catchword.reindex_goes_on is 'schedules the next keys of a reindex; false: they were the last';

-- A procedure can commit: each chunk its own short transaction, however large the scope. One that commits cannot have
-- a path of its own, so there is nothing in it that is looked up.
create procedure catchword.run_reindex(p_id bigint, p_chunk integer default null)
language plpgsql as $$
begin
  while catchword.reindex_goes_on(p_id, p_chunk) loop
    commit;
  end loop;
end $$;
comment on procedure catchword.run_reindex
  is 'schedules a reindex chunk by chunk, committing in between; harmless to repeat';

-- nobody calls a function of this schema without a grant: see grants.sql
revoke execute on all functions in schema catchword from public;
revoke execute on procedure catchword.run_reindex from public;
