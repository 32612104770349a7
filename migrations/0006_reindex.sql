-- Reindex schedules jobs and indexes nothing itself. One function makes the query for a scope; identifiers are quoted
-- here, values are bound. What is to be reindexed is written down; workers then schedule it piece by piece
-- (`feed_reindexes`), so that at most 100,000 jobs of one are open and the queue stays small.

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
  finished_at timestamptz,
  ended_at    timestamptz,
  paused_at   timestamptz,
  cancelled_at timestamptz,
  taken_off   bigint not null default 0,
  expected    bigint,
  rate        integer constraint reindex_rate_is_sane check (rate between 1 and 1000000),
  rated_at    timestamptz not null default now(),
  next_at     timestamptz not null default now(),
  measured_at timestamptz not null default now(),
  measured    bigint not null default 0,
  per_second  double precision,
  trouble     text,
  condition   text,
  reads       text
);
comment on table  catchword.reindex is 'each reindex and how far it came';
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
comment on column catchword.reindex.base
  is 'enqueued_at of its first job, so that bulks interleave; later, if it rested while others went on';
comment on column catchword.reindex.view is 'everything: the collection''s floor_view when it began';
comment on column catchword.reindex.cursor is 'the last key scheduled';
comment on column catchword.reindex.scheduled is 'how many so far';
comment on column catchword.reindex.started_at is 'when it was asked for';
comment on column catchword.reindex.started_by is 'by whom';
comment on column catchword.reindex.finished_at is 'when its last job was scheduled';
comment on column catchword.reindex.ended_at is 'when its last job was seen settled or buried, or it was cancelled';
comment on column catchword.reindex.paused_at is 'since when no more of it is scheduled; null: it is not paused';
comment on column catchword.reindex.cancelled_at is 'when somebody cancelled it';
comment on column catchword.reindex.taken_off is 'how many of its jobs were deleted because it was cancelled';
comment on column catchword.reindex.expected is 'how many keys it was counted to have, if somebody counted';
comment on column catchword.reindex.rate is 'the most keys a second that are scheduled; null: no limit';
comment on column catchword.reindex.rated_at is 'up to here the rate was used';
comment on column catchword.reindex.next_at is 'not before this a worker looks at it again';
comment on column catchword.reindex.measured_at is 'when the speed was last measured';
comment on column catchword.reindex.measured is 'how many jobs were through then';
comment on column catchword.reindex.per_second is 'the speed: jobs that came through, a second';
comment on column catchword.reindex.trouble is 'why its last piece could not be scheduled; null: it could';
comment on column catchword.reindex.condition is 'a condition in SQL over a row of the table, as it was written';
comment on column catchword.reindex.reads is 'the rows of that condition, as Postgres writes the query';
-- Workers ask for those that are not over.
create index reindex_is_open on catchword.reindex (collection) where ended_at is null;

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
  names constant jsonb := catchword.names_of(col)
    || case when r.reads is null then '{}' else jsonb_build_object('rows', format('(%s)', r.reads)) end;
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
  elsif (r.scope is null or r.scope = 'schema' and col.schema is not null) and r.period_from is null
        and r.reads is null then
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

-- A condition is SQL of somebody's own, and may call functions that write. Whatever runs in a transaction that only
-- reads can write nothing and lock no row. It cannot be taken back, but it ends with the subtransaction that it is
-- called in: so every caller has an exception clause.
create function catchword.only_read(r catchword.reindex) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if r.condition is not null then
    perform set_config('transaction_read_only', 'on', true);
  end if;
end $$;
comment on function catchword.only_read
  is 'lets the rest of this subtransaction only read, if the reindex has a condition of somebody''s own';

-- The next keys, of a few members at most: each that is read stays locked until the end. next_cursor is null: these are
-- the last.
create function catchword.reindex_keys(r catchword.reindex, p_limit integer, out keys text[], out next_cursor text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
    begin
      perform catchword.only_read(r);
      -- in the order of the key's own type, which the cursor goes by: as text, 10 comes before 9
      execute format('select array(select picked.key from (%1$s order by %2$s limit $6) as picked order by %2$s)',
                     catchword.reindex_query(r, m),
                     (select string_agg('k' || n, ', ' order by n)
                        from generate_series(1, cardinality(m.key_columns) + (m.schema is not null)::integer) as n))
        into here
        using r.value, r.period_from, r.period_to, r.keys, catchword.behind_in(m, r.cursor),
              p_limit - cardinality(keys);
    exception when assert_failure then
      -- for the subtransaction: see only_read
      raise;
    end;
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

-- The rows that a condition means, as Postgres writes the query: every name with its schema, looked up by the caller's
-- path once and never again. A cursor takes one select and nothing else, so there is no second statement in it.
create function catchword.read_condition(p_collection catchword.collection, p_condition text, p_path text) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  query constant text := format('select %s from %s t where (%s' || chr(10) || ')',
    (select string_agg('t.' || catchword.quoted(name), ', ') from unnest(p_collection.key_columns) as name),
    catchword.rows_in(p_collection.source), p_condition);
  tried refcursor;
  why text;
  made text;
begin
  if p_collection.source is null then
    perform catchword.refuse(format('collection %s is over many schemas, and a condition is over one table',
                                    p_collection.name), 'use --schema, or a scope of the configuration');
  elsif p_condition is null or btrim(p_condition, E' \t\n') = '' then
    perform catchword.refuse('the condition is empty', 'write for instance: updated < ''2026-01-01''');
  end if;
  -- nobody else makes a trial at the same time
  perform from catchword.turn where what = 'attach' for update;
  begin
    perform set_config('search_path', p_path, true);
    open tried for execute query;
    close tried;
    execute 'create view catchword.reindex_trial as ' || query;
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    made := rtrim(pg_get_viewdef('catchword.reindex_trial'::regclass), ';');
    drop view catchword.reindex_trial;
  exception
    when insufficient_privilege or lock_not_available or query_canceled then
      raise;
    when others then
      get stacked diagnostics why = message_text;
      perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
      perform catchword.refuse(format('the condition cannot be used: %s', why),
        format('write what stands behind a where, over the columns of %s, and nothing else',
               catchword.full_name(p_collection.source)));
  end;
  return made;
end $$;
comment on function catchword.read_condition
  is 'the rows of a condition as Postgres writes the query; refuses what is no condition';

-- Nobody may call it but who owns it: the functions below do, for whoever may call them.
create function catchword.write_reindex(
  p_collection text, p_scope text, p_value text, p_from timestamptz, p_to timestamptz, p_keys text[],
  p_hidden boolean, p_rewrite boolean, p_tag text, p_rate integer, p_expected bigint, p_who text, p_condition text,
  p_path text
) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  whole constant boolean := p_scope is null and p_from is null and p_keys is null and p_condition is null;
  bulk_priority constant integer := case when whole then catchword.priority_whole() else catchword.priority_part() end;
  usual_tag constant text := 'reindex.' || coalesce(
    p_scope, case when p_keys is not null then 'ids' when p_from is not null then 'between'
                  when p_condition is not null then 'where' else 'all' end);
  canonical text[];
  rows_meant text;
  new_id bigint;
begin
  perform catchword.check_reindex(p_collection, p_scope, p_value, p_from, p_to, p_keys);
  select * into strict col from catchword.collection where name = p_collection;
  if p_rate not between 1 and 1000000 then
    perform catchword.refuse(format('a rate of %s keys a second is none', p_rate), 'write a number from 1 to 1000000');
  elsif p_scope is not null then
    perform catchword.check_scope(col, p_scope, p_value);
  elsif p_from is not null then
    perform catchword.check_period(col);
  elsif p_keys is not null then
    canonical := array(select distinct k from unnest(catchword.canonical_keys(col, p_keys)) as k);
    if exists (select from unnest(canonical) as k where octet_length(k) not between 1 and 512) then
      perform catchword.refuse('a key has from 1 to 512 bytes', 'Elasticsearch takes no others; correct the key');
    end if;
  end if;
  if p_condition is not null then
    rows_meant := catchword.read_condition(col, p_condition, p_path);
  end if;

  if whole and p_rewrite then
    perform catchword.raise_floor(p_collection);
  end if;
  insert into catchword.reindex
    (collection, scope, value, period_from, period_to, keys, hidden, rewrite, priority, tag, base, view, rate, expected,
     started_by, condition, reads)
  values (p_collection, p_scope, p_value, p_from, p_to, canonical, p_hidden, p_rewrite, bulk_priority,
          left(coalesce(nullif(p_tag, ''), usual_tag), 100), catchword.bulk_base(p_collection, bulk_priority),
          (select floor_view from catchword.collection where whole and name = p_collection), p_rate, p_expected,
          catchword.who(p_who), p_condition, rows_meant)
  returning id into new_id;
  return new_id;
end $$;
comment on function catchword.write_reindex is 'writes down what is to be reindexed';

create function catchword.reindex_start(
  p_collection text, p_scope text default null, p_value text default null,
  p_from timestamptz default null, p_to timestamptz default null, p_keys text[] default null,
  p_hidden boolean default false, p_rewrite boolean default false, p_tag text default null,
  p_rate integer default null, p_expected bigint default null, p_who text default null
) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp as $$
  select catchword.write_reindex(p_collection, p_scope, p_value, p_from, p_to, p_keys, p_hidden, p_rewrite, p_tag,
                                 p_rate, p_expected, p_who, null, null)
$$;
comment on function catchword.reindex_start
  is 'writes down what is to be reindexed; workers schedule it piece by piece, or: call run_reindex';

-- A condition is SQL, and it is run with the rights of who owns these functions. So this is no security definer, and
-- nobody is granted it: whoever may not do the same by hand cannot do it here. It is tried with the caller's rights.
create function catchword.reindex_where(
  p_collection text, p_condition text, p_hidden boolean default false, p_rewrite boolean default false,
  p_tag text default null, p_rate integer default null, p_expected bigint default null, p_who text default null,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_condition is null then
    perform catchword.refuse('the condition is empty', 'write for instance: updated < ''2026-01-01''');
  end if;
  return catchword.write_reindex(p_collection, null, null, null, null, null, p_hidden, p_rewrite, p_tag, p_rate,
                                 p_expected, p_who, p_condition, p_path);
end $$;
comment on function catchword.reindex_where
  is 'the same for the rows of a condition in SQL; only for who owns the schema';

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
    begin
      perform catchword.only_read(r);
      execute format('select count(*) from (%s) as picked', catchword.reindex_query(r, m))
        into here using r.value, r.period_from, r.period_to, r.keys, catchword.behind_in(m, r.cursor);
    exception when assert_failure then
      raise;
    end;
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
  place timestamptz;
begin
  if p_limit is null or p_limit < 1 then
    perform catchword.refuse('a chunk has at least one key', 'give a number above 0');
  end if;
  -- two that schedule the same reindex take turns
  select * into r from catchword.reindex where id = p_id for update;
  if not found then
    perform catchword.refuse(format('there is no reindex %s', p_id), 'see: catchword reindex list');
  elsif r.finished_at is not null or r.cancelled_at is not null then
    return 0;
  end if;
  select k.keys, k.next_cursor into picked_keys, goes_on from catchword.reindex_keys(r, p_limit) as k;
  picked := cardinality(picked_keys);
  if r.rewrite and r.priority < catchword.priority_whole() then
    -- a row that somebody holds is given its number in a moment
    perform catchword.touch_again(r.collection, catchword.rows_of(r.collection, array(
      select unnest(picked_keys) except select unnest(catchword.draw(r.collection, picked_keys)))));
  end if;
  -- behind its own last job; and one that rested goes on beside the first of the others, not before all of them
  place := greatest(r.base + r.scheduled * interval '1 microsecond', catchword.bulk_base(r.collection, r.priority));
  -- also where there is no row: then its absence is what is looked at
  insert into catchword.job (collection, key, enqueued_at, priority, tag, reindex)
  select r.collection, k, place + n * interval '1 microsecond', r.priority, r.tag, r.id
    from unnest(picked_keys) with ordinality as t (k, n) order by n;
  update catchword.reindex
     set scheduled = scheduled + picked, cursor = coalesce(goes_on, picked_keys[picked], cursor),
         base = place - r.scheduled * interval '1 microsecond', trouble = null,
         finished_at = case when goes_on is null then now() end,
         ended_at = case when goes_on is null and scheduled + picked = 0 then now() end,
         expected = case when goes_on is null then scheduled + picked
                         when expected is not null then greatest(expected, scheduled + picked) end
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
            concat_ws(' ', r.tag, r.value, r.condition, case when r.rewrite then 'rewrite' end), r.scheduled + picked);
  end if;
  return picked;
end $$;
comment on function catchword.reindex_chunk
  is 'schedules the next keys of a reindex, however many are open; finished_at is then set, if these were the last';

create function catchword.open_of_reindex(p_id bigint, out opened bigint, out ahead bigint)
language sql stable set search_path = pg_catalog, pg_temp as $$
  select count(*), count(*) filter (where attempts = 0) from catchword.job where reindex in (p_id, -p_id)
$$;
comment on function catchword.open_of_reindex
  is 'how many jobs of a reindex are open, and how many of them were never refused';

-- The queue stays small: a reindex of millions has so many jobs open at most.
create function catchword.most_open() returns bigint
language sql immutable set search_path = pg_catalog, pg_temp as $$ select 100000::bigint $$;
comment on function catchword.most_open is 'how many jobs of one reindex are open at most';

-- Rows that draw a number are locked until the commit, and their writers wait: fewer at a time.
create function catchword.chunk_size(r catchword.reindex) returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when r.rewrite and r.priority < catchword.priority_whole() then 2500 else 10000 end
$$;
comment on function catchword.chunk_size is 'how many keys of a reindex are scheduled in one transaction';

create function catchword.reindex_goes_on(p_id bigint, p_chunk integer) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.reindex;
  size integer;
begin
  select * into r from catchword.reindex where id = p_id;
  size := coalesce(p_chunk, catchword.chunk_size(r), 1);
  if r.paused_at is not null or r.rate is not null
     -- there are never more open than were scheduled
     or r.scheduled + size > catchword.most_open()
        and (select opened from catchword.open_of_reindex(p_id)) + size > catchword.most_open() then
    return false;
  end if;
  perform catchword.reindex_chunk(p_id, size);
  return exists (select from catchword.reindex where id = p_id and finished_at is null and cancelled_at is null);
end $$;
comment on function catchword.reindex_goes_on
  is 'schedules the next keys of a reindex; false: they were the last, or workers schedule the rest';

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
  is 'schedules up to 100,000 keys in the caller''s own transaction, and returns how many; workers schedule the rest';

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
  is 'schedules a reindex chunk by chunk, committing in between, until 100,000 jobs are open; harmless to repeat';

-- What workers do. Each looks for reindexes whose time has come, and whoever has locked one schedules its next piece.

-- Jobs that a batch holds are left to the next look. Some stay, and get the number with a minus: one that came back
-- from a dead letter has it already, for it may be all that is left of a write; and one that was worked on and made its
-- key draw a number (the index was ahead, or had a document without a row) is the only memory of that.
create function catchword.take_off(r catchword.reindex) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  free constant bigint[] := array(select j.id from catchword.job j where j.reindex = r.id for update skip locked);
  taken bigint;
begin
  update catchword.job j set reindex = -r.id
   where j.id = any(free)
     and (j.attempts > 0
          or exists (select from catchword.record d
                      where d.collection = j.collection and d.key = j.key and d.recorded_at >= r.started_at));
  delete from catchword.job j where j.id = any(free) and j.reindex = r.id;
  get diagnostics taken = row_count;
  return taken;
end $$;
comment on function catchword.take_off
  is 'deletes the jobs of a reindex that nobody works on and nothing needs; returns how many';

-- A job of a plain reindex is a wish to look, and can go. A job of one that rewrites is the only memory of a number
-- that was drawn, or of a floor that was raised: it stays, and is worked on.
create function catchword.end_reindex(r catchword.reindex) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  taken bigint := 0;
begin
  -- a worker that schedules its next piece just now is through first
  perform from catchword.reindex where id = r.id for update;
  if not r.rewrite then
    taken := catchword.take_off(r);
  end if;
  update catchword.reindex
     set cancelled_at = coalesce(cancelled_at, now()), paused_at = null, taken_off = taken_off + taken,
         ended_at = case when r.rewrite or not exists (select from catchword.job where reindex = r.id) then now() end,
         next_at = now() + interval '1 second'
   where id = r.id;
  return taken;
end $$;
comment on function catchword.end_reindex
  is 'cancels a reindex and deletes its jobs; those that a batch holds now are deleted later, by a worker';

-- How many keys may be scheduled now: while less than 100,000 jobs are open, and of a rate only what its time allows.
-- A limited one keeps little ahead, so that another rate counts at once. Refused jobs wait for minutes: they do
-- not count for that.
create function catchword.allowed(r catchword.reindex, p_opened bigint, p_ahead bigint) returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when r.rate is null and room.free < catchword.chunk_size(r) then 0
              when r.rate is null then catchword.chunk_size(r)
              else greatest(0, least(room.free, catchword.chunk_size(r), greatest(r.rate * 2, 10) - p_ahead,
                     floor(least(extract(epoch from now() - r.rated_at), 1) * r.rate))) end::bigint
    from (select catchword.most_open() - p_opened) as room (free)
$$;
comment on function catchword.allowed is 'how many keys of a reindex may be scheduled now';

create function catchword.feed_reindex(r catchword.reindex) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  its record;
  most bigint := 0;
  picked bigint := 0;
  wait interval;
  why text;
  speed double precision := r.per_second;
  measures constant boolean := now() - r.measured_at >= interval '5 seconds';
begin
  select * into its from catchword.open_of_reindex(r.id);
  if r.cancelled_at is not null then
    perform catchword.end_reindex(r);
    return 0;
  end if;
  if measures then
    speed := (r.scheduled - its.opened - r.measured) / extract(epoch from now() - r.measured_at);
    speed := greatest(coalesce((speed + r.per_second) / 2, speed), 0);
  end if;
  if r.finished_at is null then
    most := catchword.allowed(r, its.opened, its.ahead);
  end if;
  if most > 0 then
    begin
      picked := catchword.reindex_chunk(r.id, most::integer);
    exception
      when lock_not_available or deadlock_detected or serialization_failure then
        -- nobody's fault, and soon over
        wait := interval '1 second';
      when query_canceled or others then
        -- a column that is gone, a condition that fails, a scope without an index: it holds up nobody else
        get stacked diagnostics why = message_text;
        wait := interval '30 seconds';
    end;
  end if;
  update catchword.reindex
     set ended_at = coalesce(ended_at, case when r.finished_at is not null and its.opened = 0 then now() end),
         rated_at = greatest(r.rated_at, now() - interval '1 second')
                    + coalesce(picked / r.rate::double precision, 0) * interval '1 second',
         trouble = coalesce(left(why, 300), trouble), per_second = speed,
         measured_at = case when measures then now() else r.measured_at end,
         measured = case when measures then r.scheduled - its.opened else r.measured end,
         next_at = clock_timestamp() + coalesce(wait, case
           when r.finished_at is not null or finished_at is not null then interval '2 seconds'
           when r.rate is not null then interval '1 second' * greatest(least(10.0 / r.rate, 1), 0.5)
           when picked > 0 then interval '0'
           -- until there is room for a chunk
           else interval '1 second' * least(greatest(catchword.chunk_size(r) / nullif(speed, 0), 0.25), 2) end)
   where id = r.id;
  return picked;
end $$;
comment on function catchword.feed_reindex
  is 'schedules the next piece of a locked reindex, if there is room for it; notes its speed and its end';

create function catchword.feed_reindexes(
  p_collections text[], p_id bigint default null,
  out fed text[], out scheduled bigint, out next_seconds double precision, out limited boolean
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  began constant timestamptz := clock_timestamp();
  looked integer := 0;
  r catchword.reindex;
  picked bigint;
begin
  fed := '{}'; scheduled := 0;
  -- one transaction of some hundred milliseconds at most, but for the last piece
  while looked < 50 and scheduled < 10000 and clock_timestamp() - began < interval '200 milliseconds' loop
    select x.* into r from catchword.reindex x
     where x.ended_at is null and x.paused_at is null and x.next_at <= now()
       and x.collection = any(p_collections) and (p_id is null or x.id = p_id)
       and not exists (select from catchword.pause p where p.collection = x.collection)
     order by x.next_at, x.id limit 1 for update skip locked;
    exit when not found;
    picked := catchword.feed_reindex(r);
    scheduled := scheduled + picked;
    looked := looked + 1;
    if picked > 0 then
      fed := fed || r.collection;
      -- rows that drew a number are locked until the end
      exit when r.rewrite;
    end if;
  end loop;
  if scheduled = 0 then
    -- the end of those that are through is noted at once
    update catchword.reindex set ended_at = now()
     where id = any(array(
       select x.id from catchword.reindex x
        where x.ended_at is null and x.finished_at is not null and x.cancelled_at is null
          and x.collection = any(p_collections)
          and not exists (select from catchword.job j where j.reindex in (x.id, -x.id))
          for update skip locked));
  end if;
  select extract(epoch from min(x.next_at) - clock_timestamp()),
         coalesce(bool_or(case when x.rate is not null and x.finished_at is null and x.cancelled_at is null
                               then (select ahead from catchword.open_of_reindex(x.id)) < greatest(x.rate * 2, 10)
                          end), false)
    into next_seconds, limited
    from catchword.reindex x
   where x.ended_at is null and x.paused_at is null and x.collection = any(p_collections)
     and not exists (select from catchword.pause p where p.collection = x.collection);
end $$;
comment on function catchword.feed_reindexes
  is 'for workers: schedules the next piece of reindexes whose time has come. fed: the collections that got jobs; '
     'next_seconds: when to ask again, null: no reindex is open; limited: one waits for its rate';

-- For people and programs: what there is, and how far it came.

create function catchword.reindex_words(r catchword.reindex) returns text
language sql stable set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO, YMD' as $$
  select case when r.scope is not null then concat_ws(' ', r.scope, r.value)
              when r.period_from is not null then concat_ws(' ', 'between', r.period_from, r.period_to)
              when cardinality(r.keys) = 1 then 'key ' || r.keys[1]
              when r.keys is not null then cardinality(r.keys) || ' keys'
              when r.condition is not null then 'where ' || r.condition
              else 'everything' end
$$;
comment on function catchword.reindex_words is 'what is reindexed, for people';

create function catchword.reindexes(p_collection text default null, p_id bigint default null, p_limit bigint default 20)
returns table (id bigint, collection text, what text, tag text, state text, rewrite boolean, expected bigint,
               scheduled bigint, all_scheduled boolean, open bigint, settled bigint, dead bigint, taken_off bigint,
               rate integer, per_second double precision, seconds_left double precision, started_at timestamptz,
               started_by text, ended_at timestamptz, trouble text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with picked as materialized (
    select r from catchword.reindex r
     where (p_collection is null or r.collection = p_collection) and (p_id is null or r.id = p_id)
     order by r.ended_at is null desc, r.id desc limit p_limit
  ),
  counted as (
    select p.r, its.opened, letters.dead,
           greatest((p.r).scheduled - its.opened - letters.dead - (p.r).taken_off, 0) as settled,
           case when (p.r).cancelled_at is not null then 'cancelled'
                when (p.r).ended_at is not null or (p.r).finished_at is not null and its.opened = 0 then 'finished'
                when (p.r).paused_at is not null then 'paused'
                else 'running' end as state,
           case when (p.r).measured_at > now() - interval '1 minute' then (p.r).per_second end as speed
      from picked p
     cross join lateral catchword.open_of_reindex((p.r).id) as its
     cross join lateral (select count(*) as dead from catchword.dead_job d where d.reindex = (p.r).id) as letters
  )
  select (c.r).id, (c.r).collection, catchword.reindex_words(c.r), (c.r).tag, c.state, (c.r).rewrite, (c.r).expected,
         (c.r).scheduled, (c.r).finished_at is not null, c.opened, c.settled, c.dead, (c.r).taken_off, (c.r).rate,
         case when c.state = 'running' then c.speed end,
         case when c.state = 'running' and c.speed > 0 and (c.r).expected is not null
              then greatest((greatest((c.r).expected, (c.r).scheduled) - c.settled - c.dead) / c.speed,
                            ((c.r).expected - (c.r).scheduled) / (c.r).rate::double precision) end,
         (c.r).started_at, (c.r).started_by, (c.r).ended_at, (c.r).trouble
    from counted c
   order by (c.r).ended_at is null desc, (c.r).id desc
$$;
comment on function catchword.reindexes
  is 'reindexes and how far they came, those that are not over first, the newest first';

-- What operators do to a reindex. The journal says who it was.

create function catchword.lock_reindex(p_id bigint) returns catchword.reindex
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.reindex;
begin
  select * into r from catchword.reindex where id = p_id for update;
  if not found then
    perform catchword.refuse(format('there is no reindex %s', p_id), 'see: catchword reindex list');
  end if;
  return r;
end $$;
comment on function catchword.lock_reindex is 'a reindex, locked; refuses one that is not there';

create function catchword.cancel_reindex(p_id bigint, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  r constant catchword.reindex := catchword.lock_reindex(p_id);
  whole constant boolean := r.priority = catchword.priority_whole();
  taken bigint;
begin
  if r.ended_at is not null or r.cancelled_at is not null
     or r.finished_at is not null and not exists (select from catchword.job where reindex = p_id) then
    return false;
  elsif exists (select from catchword.rebuild b
                 where b.collection = r.collection and r.tag = 'reindex.rebuild.' || b.id
                   and b.stage in ('create', 'fill', 'drain', 'verify', 'swap')) then
    perform catchword.refuse(format('reindex %s fills the new index of a rebuild', p_id),
      format('undo that instead: catchword rebuild %s --abort', r.collection));
  elsif whole and r.rewrite and r.finished_at is null
        and not exists (select from catchword.reindex n
                         where n.collection = r.collection and n.id > r.id and n.priority = r.priority and n.rewrite
                           and n.hidden >= r.hidden and n.cancelled_at is null) then
    -- the floor cannot go back, so what is not scheduled yet would stay old without a job
    perform catchword.refuse(
      format('reindex %s writes everything again: since it began, every document counts as old', p_id),
      format('pause it (catchword reindex pause %1$s) or slow it down (catchword reindex rate %1$s 100); or begin '
             'another one for everything with --rewrite, and then cancel this one', p_id));
  end if;
  taken := catchword.end_reindex(r);
  insert into catchword.journal (who, what, collection, detail, count)
  values (catchword.who(p_who), 'cancel', r.collection,
          format('reindex %s: %s', p_id, catchword.reindex_words(r))
            || case when r.started_by <> catchword.who(p_who) then ', begun by ' || r.started_by else '' end,
          taken);
  return true;
end $$;
comment on function catchword.cancel_reindex
  is 'ends a reindex: its jobs are deleted; those of one that rewrites stay, because the index needs them. '
     'False: it was over already';

create function catchword.pause_reindex(p_id bigint, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  r constant catchword.reindex := catchword.lock_reindex(p_id);
begin
  if r.finished_at is not null or r.cancelled_at is not null or r.paused_at is not null then
    return false;
  end if;
  update catchword.reindex set paused_at = now(), per_second = null where id = p_id;
  insert into catchword.journal (who, what, collection, detail)
  values (catchword.who(p_who), 'pause', r.collection, format('reindex %s: %s', p_id, catchword.reindex_words(r)));
  return true;
end $$;
comment on function catchword.pause_reindex
  is 'schedules no more of a reindex; what is open is still worked on. False: it was paused, or all was scheduled';

create function catchword.resume_reindex(p_id bigint, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  r constant catchword.reindex := catchword.lock_reindex(p_id);
begin
  if r.paused_at is null then
    return false;
  end if;
  update catchword.reindex
     set paused_at = null, next_at = now(), rated_at = now(), measured_at = now(),
         measured = r.scheduled - (select opened from catchword.open_of_reindex(p_id))
   where id = p_id;
  insert into catchword.journal (who, what, collection, detail)
  values (catchword.who(p_who), 'resume', r.collection, format('reindex %s: %s', p_id, catchword.reindex_words(r)));
  return true;
end $$;
comment on function catchword.resume_reindex is 'goes on with a reindex that is paused; false: it was not';

create function catchword.set_reindex_rate(p_id bigint, p_rate integer, p_who text default null) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  r constant catchword.reindex := catchword.lock_reindex(p_id);
begin
  if p_rate not between 1 and 1000000 then
    perform catchword.refuse(format('a rate of %s keys a second is none', p_rate), 'write a number from 1 to 1000000');
  elsif r.finished_at is not null or r.cancelled_at is not null then
    return false;
  end if;
  update catchword.reindex set rate = p_rate, rated_at = now(), next_at = now() where id = p_id;
  insert into catchword.journal (who, what, collection, detail)
  values (catchword.who(p_who), 'rate', r.collection,
          format('reindex %s: %s, %s', p_id, catchword.reindex_words(r),
                 coalesce(p_rate || ' keys a second', 'no limit')));
  return true;
end $$;
comment on function catchword.set_reindex_rate
  is 'the most keys a second that a reindex schedules; null: no limit. False: all was scheduled';

-- nobody calls a function of this schema without a grant: see grants.sql
revoke execute on all functions in schema catchword from public;
revoke execute on procedure catchword.run_reindex from public;
