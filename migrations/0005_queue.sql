-- What the worker and operators do by SQL. The functions that write are security definer, so that a worker's role
-- needs no right on the application's tables but to read them. Nobody may call them until grants.sql says so.

-- For templates that read the table of a collection: see `fill` in 0002_triggers.sql.
-- `{rows}` is where its rows are read. `p_array`: see `key_names`. Tables are read member by member; of a collection
-- over many schemas there are only the names that have to do with keys.
create function catchword.names_of(p_collection catchword.collection, p_array text default 'text[]') returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  select catchword.key_names(p_collection.key_columns, p_collection.key_types, p_array, p_collection.schema)
         || jsonb_build_object(
    'collection', quote_literal(catchword.whole_name(p_collection)),
    'member', quote_literal(p_collection.name),
    'table', catchword.full_name(p_collection.source),
    'rows', catchword.rows_in(p_collection.source),
    'view', p_collection.view,
    'document_id', case when p_collection.has_ids then 'v.id' else 'null' end,
    'revision', catchword.quoted(p_collection.revision_column))
$$;
comment on function catchword.names_of is 'what the names in a template stand for, of an attached collection';

-- A refusal waits 1, 2, 4, … minutes, at most an hour, each a quarter more or less.
create function catchword.retry_at(p_refused_before integer) returns timestamptz
language sql set search_path = pg_catalog, pg_temp as $$
  select now() + least(interval '1 minute' * 2 ^ p_refused_before, interval '1 hour') * (0.75 + random() / 2)
$$;
comment on function catchword.retry_at is 'when a job is due again that is refused now';

-- The first enqueued_at of a bulk: among what is due and was never refused, so that bulks of one priority interleave
-- one by one.
create function catchword.bulk_base(p_collection text, p_priority integer) returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp
-- it is asked for each chunk of a reindex, and must not sort what another has just scheduled
set enable_sort = off set enable_seqscan = off as $$
  select coalesce(
    (select least(enqueued_at, now()) from catchword.job
      where collection = p_collection and priority = p_priority and name = 'index'
        and scheduled_at <= now() and attempts = 0
        and not exists (select from catchword.pause where pause.collection = p_collection)
      order by enqueued_at, id limit 1),
    now());
$$;
comment on function catchword.bulk_base
  is 'where a bulk begins in the walk, so that it interleaves with the bulks before it';

-- The text that a key of several columns has is made of the texts of its parts, each as its own type writes it.
create function catchword.canonical(p_collection catchword.collection, p_keys text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp set datestyle = 'ISO, MDY' as $$
declare
  names constant jsonb := catchword.names_of(p_collection);
  -- the id of a document is understood too, where it is not a key
  keys constant text[] := array(
    select coalesce((select d.key from catchword.document_id d
                      where d.collection = p_collection.name and (d.key = k or d.id = k)
                      order by d.key <> k limit 1), k)
      from unnest(p_keys) with ordinality as given (k, n) order by n);
  parts constant integer := cardinality(p_collection.key_columns);
  odd text;
  canonical text[];
begin
  select k into odd from unnest(keys) as k
   where parts > 1 and cardinality(string_to_array(k, '/')) is distinct from parts limit 1;
  if found then
    raise exception using errcode = 'invalid_text_representation',
      message = format('%L has not %s parts with a / in between', odd, parts);
  end if;
  execute catchword.fill('select array(select {k_key} from (select {values_of given.key} from unnest($1)
                            with ordinality as given (key, n) order by n) as k)', names)
    into canonical using keys;
  return canonical;
end $$;
comment on function catchword.canonical is 'keys as texts of their own types; fails for what is no key';

-- For whoever wants a sentence about what is no key.
create function catchword.canonical_keys(p_collection catchword.collection, p_keys text[]) returns text[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  problem text;
begin
  return catchword.canonical(p_collection, p_keys);
exception when data_exception then
  get stacked diagnostics problem = message_text;
  perform catchword.refuse(
    format('not a key of %s, whose keys are of type %s: %s',
           p_collection.name, array_to_string(p_collection.key_types, ', '), problem),
    case when cardinality(p_collection.key_types) > 1
         then format('write %s, and %%2F for a / in a value', array_to_string(p_collection.key_columns, '/'))
         when p_collection.key_types[1] = 'uuid' then 'write 01234567-89ab-cdef-0123-456789abcdef'
         when p_collection.key_types[1] = 'date' then 'write 2026-01-31'
         when p_collection.key_types[1] = 'numeric' then 'write a number'
         else 'write a whole number' end);
end $$;
comment on function catchword.canonical_keys is 'keys as the texts of their own types; refuses what is no key';

create function catchword.members_at(p_collection text, p_keys text[]) returns setof catchword.collection
language sql stable set search_path = pg_catalog, pg_temp as $$
  select m.* from catchword.members(p_collection) as m
   where m.schema is null or m.schema in (select catchword.schema_in(k) from unnest(p_keys) as k)
$$;
comment on function catchword.members_at is 'the members that these keys belong to; or the collection itself';

-- A key without a row is in a lane of its own: nobody knows whose it was.
create function catchword.lanes_of(p_collection text, p_keys text[]) returns smallint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set datestyle = 'ISO, MDY' as $$
declare
  tenants constant name := (select fair_by from catchword.collection where name = p_collection);
  m catchword.collection;
  found_here jsonb;
  lanes jsonb := '{}';
begin
  if tenants is null then
    return null;
  end if;
  begin
    for m in select * from catchword.members_at(p_collection, p_keys) loop
      execute catchword.fill('select jsonb_object_agg({t_key}, {lane}) from {rows} t where {t_at $1}',
        catchword.names_of(m) || jsonb_build_object('lane', catchword.lane_of(tenants, 't', m.schema)))
        into found_here using p_keys;
      lanes := lanes || coalesce(found_here, '{}');
    end loop;
  exception when undefined_column then
    -- it was renamed; `migrate` says so
    null;
  end;
  return array(select coalesce((lanes ->> k)::smallint, catchword.lane(k))
                 from unnest(p_keys) with ordinality as given (k, n) order by n);
end $$;
comment on function catchword.lanes_of is 'the lanes of these keys, of a collection with fair_by; otherwise null';

-- The default is `priority_live()`, as a number: a default is evaluated with the caller's rights. A live job that is
-- due at once is quick. Jobs of more than 1,000 keys stand behind live writes, and are spaced like those of a reindex.
create function catchword.schedule(
  p_collection text, p_keys text[], p_tag text default 'manual', p_priority integer default 1,
  p_delay interval default '0'
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  priorities constant integer[] :=
    array[catchword.priority_live(), catchword.priority_part(), catchword.priority_whole()];
  job_priority constant integer :=
    case when cardinality(p_keys) > 1000 then greatest(p_priority, catchword.priority_part())
         when p_priority = catchword.priority_live() and p_delay = interval '0' then catchword.priority_quick()
         else p_priority end;
  keys text[];
  scheduled bigint;
begin
  select * into col from catchword.collection where name = p_collection;
  if not found then
    perform catchword.refuse(format('there is no collection %L', p_collection),
      'select name from catchword.collection');
  elsif p_keys is null then
    perform catchword.refuse('the list of keys is null', $v$write coalesce(array_agg(…), '{}')$v$);
  elsif array_ndims(p_keys) > 1 then
    perform catchword.refuse('the list of keys is a list of lists', 'give one list');
  elsif array_position(p_keys, null) is not null then
    perform catchword.refuse('a key is null', 'leave it out');
  elsif cardinality(p_keys) > 100000 then
    perform catchword.refuse(format('%s keys are too many at once', cardinality(p_keys)),
      'schedule at most 100000 in a call, or use catchword.reindex');
  elsif p_priority is null or p_priority <> all(priorities) then
    perform catchword.refuse(format('there is no priority %s', coalesce(p_priority::text, 'null')),
      format('write %s (live), %s (part) or %s (whole)', priorities[1], priorities[2], priorities[3]));
  elsif p_delay is null or p_delay < interval '0' then
    perform catchword.refuse(format('a delay of %s is no delay', coalesce(p_delay::text, 'null')),
      'write 0 for at once, or for instance 5 minutes');
  elsif p_delay > interval '1 day' then
    perform catchword.refuse(format('a delay of %s is longer than a day', p_delay), 'schedule it when it is due');
  end if;
  -- the text of the key's own type: an upper-case uuid or ' 7' would otherwise never meet its row
  keys := catchword.canonical_keys(col, p_keys);
  -- it expires so long after it is due: by that a job that waits for long is told from one of a clock that was ahead
  insert into catchword.job (collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, lane)
  select p_collection, given.key,
         case when cardinality(keys) > 1000 then b.base + given.n * interval '1 microsecond' else now() end,
         now() + p_delay, now() + p_delay + interval '30 days', job_priority,
         left(coalesce(nullif(p_tag, ''), 'manual'), 100), given.lane
    from unnest(keys, case when job_priority <= catchword.priority_live()
                           then catchword.lanes_of(p_collection, keys) end) with ordinality as given (key, lane, n),
         (select catchword.bulk_base(p_collection, job_priority) offset 0) as b (base)
   order by given.n;
  get diagnostics scheduled = row_count;
  return scheduled;
end $$;
comment on function catchword.schedule is 'schedules keys by hand, from any language';

-- What cannot be a key has no row.
create function catchword.rows_at(p_collection text, p_keys text[])
returns table (key text, revision bigint, floor bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  m catchword.collection;
  fit text[];
begin
  select * into strict col from catchword.collection where name = p_collection;
  execute catchword.fill('select array(select k from unnest($1) as k where {fits k})', catchword.names_of(col))
    into fit using p_keys;
  for m in select * from catchword.members_at(p_collection, fit) loop
    return query execute catchword.fill(
      'select {t_key}, greatest(coalesce(t.{revision}, 0), $2), $2 from {rows} t where {t_at $1}',
      catchword.names_of(m)) using fit, m.floor;
  end loop;
end $$;
comment on function catchword.rows_at is 'of these keys, those that have a row, its number or the floor, and the floor';

-- What the tables say of keys, without a look at the queue: the number that a key has now, and whether a write or a
-- touch drew it. If not, it is the floor, which nobody was promised a job for. All functions from here to `standing`
-- are stable: they see the snapshot of the statement that calls them, in which a row and its job are both or neither.
create function catchword.numbers_of(p_collection catchword.collection, p_keys text[])
returns table (asked text, key text, revision bigint, drawn boolean)
language plpgsql stable set search_path = pg_catalog, pg_temp set datestyle = 'ISO, MDY' as $$
declare
  keys constant text[] := catchword.canonical_keys(p_collection, p_keys);
begin
  return query
    select n.asked, n.key,
           case when n.floor is not null then greatest(n.revision, n.recorded + n.recorded % 2)
                when n.recorded % 2 = 1 then n.recorded end,
           -- no row has just the floor's number
           case when n.floor is not null then n.revision > n.floor or coalesce(n.recorded >= n.floor, false)
                else coalesce(n.recorded % 2 = 1, false) end
      from (select distinct k.asked, k.key, own.revision, own.floor,
                   (select r.revision from catchword.record r where r.collection = p_collection.name and r.key = k.key
                     order by r.revision desc limit 1) as recorded
              from unnest(p_keys, keys) as k (asked, key)
              left join catchword.rows_at(p_collection.name, keys) as own on own.key = k.key) as n
     order by n.key;
end $$;
comment on function catchword.numbers_of
  is 'of these keys the revision that each has now, odd: it is deleted; null: never seen; and whether it was drawn';

-- How many keys may be asked for at once: the answer is for somebody who waits.
create function catchword.asked_collection(p_collection text, p_keys text[]) returns catchword.collection
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
begin
  select * into col from catchword.collection where name = p_collection;
  if not found then
    perform catchword.refuse(format('there is no collection %L', p_collection),
      coalesce('there is ' || (select string_agg(name, ', ' order by name) from catchword.collection),
               'attach one: catchword migrate'));
  elsif p_keys is null then
    perform catchword.refuse('the list of keys is null', $v$write coalesce(array_agg(…), '{}')$v$);
  elsif array_ndims(p_keys) > 1 then
    perform catchword.refuse('the list of keys is a list of lists', 'give one list');
  elsif array_position(p_keys, null) is not null then
    perform catchword.refuse('a key is null', 'leave it out');
  elsif cardinality(p_keys) > 1000 then
    perform catchword.refuse(format('%s keys are too many at once', cardinality(p_keys)), 'ask for at most 1000');
  end if;
  return col;
end $$;
comment on function catchword.asked_collection is 'the collection that keys are asked of; refuses what is no question';

create function catchword.known(p_collection text, p_keys text[])
returns table (asked text, key text, revision bigint, dead text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  col constant catchword.collection := catchword.asked_collection(p_collection, p_keys);
begin
  return query
    select n.asked, n.key, n.revision,
           (select d.reason from catchword.dead_job d
             where d.key = n.key and d.collection = col.name and d.name = 'index' order by d.died_at desc limit 1)
      from catchword.numbers_of(col, p_keys) as n;
end $$;
comment on function catchword.known
  is 'of these keys the revision that each has now, and the reason of its dead letter; the queue is not read';

-- For an application that wants to know whether its write has reached the index. What it says of a key:
--   open              a job is open; null: not known, because 10,000 jobs or more are there and it is not among those
--                     that were read (the newest live ones, the next of the bulks)
--   dead              the reason of its dead letter, if no job is open. Not the error: that may quote the document,
--                     and whoever asks may not be allowed to read it
--   settled_revision  no job is open and none was given up: so the last job of this revision was settled, by a look
--                     that saw every index agree. Null where that is not known: a job is open or may be, the row is
--                     older than catchword, `p_since` was given. (An operator who discards a dead letter lets it look
--                     settled too.)
-- There is no index on the key of a job: writers would pay for it, a bulk two thirds more. So the reading is bounded.
-- `p_since` is the time of a transaction, its now(): jobs from before it are passed over by the index, however many
-- there are. Then `open` is about what was written since; a statement with more than 1,000 rows must not be asked for
-- like this, because its jobs stand among those of earlier bulks.
create function catchword.standing(p_collection text, p_keys text[], p_since timestamptz default null)
returns table (key text, revision bigint, open boolean, since timestamptz, due_at timestamptz, attempts integer,
               dead text, dead_since timestamptz, settled_revision bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_sort = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
  most constant integer := 10000;
  col constant catchword.collection := catchword.asked_collection(p_collection, p_keys);
  -- a time that is still to come is of a clock that was ahead, and jobs of such a time are dated back
  bound constant timestamptz := case when p_since <= now() then p_since end;
begin
  return query
    with numbers as materialized (
      select distinct n.key, n.revision, n.drawn from catchword.numbers_of(col, p_keys) as n
    ),
    -- those that are quicker than live stand apart, or they would come behind all others
    quick as materialized (
      select j.name, j.key, j.enqueued_at, j.scheduled_at, j.attempts from catchword.job j
       where j.collection = col.name and j.priority < catchword.priority_live()
         and j.enqueued_at >= coalesce(bound, '-infinity')
       order by j.priority desc, j.enqueued_at desc, j.id desc limit most
    ),
    live as materialized (
      select j.name, j.key, j.enqueued_at, j.scheduled_at, j.attempts from catchword.job j
       where j.collection = col.name and j.priority = catchword.priority_live()
         and j.enqueued_at >= coalesce(bound, '-infinity')
       order by j.enqueued_at desc, j.id desc limit most
    ),
    bulk as materialized (
      select j.name, j.key, j.enqueued_at, j.scheduled_at, j.attempts from catchword.job j
       where j.collection = col.name and j.priority > catchword.priority_live() and bound is null
       order by j.priority, j.enqueued_at, j.id limit most
    ),
    opened as materialized (
      select j.key, min(j.enqueued_at) as since, min(j.scheduled_at) as due_at, max(j.attempts) as attempts
        from (select * from quick union all select * from live union all select * from bulk) as j
        join numbers n on n.key = j.key where j.name = 'index' group by j.key
    ),
    seen (all_of_them) as materialized (
      select (select count(*) from quick) < most and (select count(*) from live) < most
             and (select count(*) from bulk) < most
    ),
    stood as (
      select n.key, n.revision, n.drawn, o.since, o.due_at, o.attempts,
             case when o.key is not null then true when seen.all_of_them then false end as open
        from numbers n cross join seen left join opened o on o.key = n.key
    )
    select s.key, s.revision, s.open, s.since, s.due_at, s.attempts, letter.reason, letter.died_at,
           case when s.open is false and letter.reason is null and s.drawn and p_since is null then s.revision end
      from stood s
      left join lateral (select d.reason, d.died_at from catchword.dead_job d
                          where d.key = s.key and d.collection = col.name and d.name = 'index'
                            and s.open is not true
                          order by d.died_at desc limit 1) as letter on true
     order by s.key;
end $$;
comment on function catchword.standing
  is 'of these keys: the revision, whether a job is open, since when, refusals, whether it was given up, what is '
     'settled; from any language';

-- A new number for rows, without writing to them: a trigger of the table would fire, and it is not ours. A row is
-- locked, a number is drawn under that lock, and the number is recorded: whoever writes the row later draws a higher
-- one. Rows are locked in the order of their keys; one that somebody else holds is passed over, and the caller meets
-- it again. It leaves no job: the caller does.
create function catchword.draw(p_collection text, p_keys text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  m catchword.collection;
  locked_here text[];
  locked_keys text[] := '{}';
begin
  for m in select * from catchword.members_at(p_collection, p_keys) loop
    begin
      execute catchword.fill($t$
        select array(select locked.key from (
          select {t_key} as key from {rows} t
           where {t_at $1}
           order by {t_columns} for no key update skip locked) as locked)$t$, catchword.names_of(m))
        into locked_here using p_keys;
      locked_keys := locked_keys || locked_here;
    exception when serialization_failure then
      -- a row has just moved to another partition, and cannot be followed there: the caller meets it again too
      null;
    end;
  end loop;
  -- whatever is recorded by now lies below the numbers that are drawn next
  delete from catchword.record r using (
    select o.key, o.revision from catchword.record o
     where o.collection = p_collection and o.key = any(locked_keys) for update skip locked) as older
   where r.collection = p_collection and r.key = older.key and r.revision = older.revision;
  insert into catchword.record (collection, key, revision)
  select p_collection, k, nextval('catchword.revision') from unnest(locked_keys) k;
  return locked_keys;
end $$;
comment on function catchword.draw
  is 'draws and records a new number for rows; returns the keys of those that it could lock';

create function catchword.touch(p_collection text, p_keys text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  drawn_keys constant text[] := catchword.draw(p_collection, p_keys);
begin
  insert into catchword.job (collection, key, priority, tag, lane)
  select p_collection, k, catchword.priority_quick(), 'touch', lane
    from unnest(drawn_keys, catchword.lanes_of(p_collection, drawn_keys)) as drawn (k, lane);
  return drawn_keys;
end $$;
comment on function catchword.touch
  is 'gives rows a new version, and a job each; returns the keys of those that it could lock';

create function catchword.rows_of(p_collection text, p_keys text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select array(select key from catchword.rows_at(p_collection, p_keys))
$$;
comment on function catchword.rows_of is 'of these keys, those that have a row';

-- Rows that could not be locked are touched in a moment, each by a job of its own.
create function catchword.touch_again(p_collection text, p_keys text[], p_enqueued_at timestamptz default now())
returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into catchword.job (name, collection, key, enqueued_at, scheduled_at, priority, tag)
  select 'touch', p_collection, '=' || k, p_enqueued_at, now() + interval '1 second' * (1 + random()),
         catchword.priority_live(), 'touch'
    from unnest(p_keys) k
$$;
comment on function catchword.touch_again is 'leaves a touch for each of these keys, due in one to two seconds';

-- For triggers of your own, where `touches` cannot say what belongs together. It can fail no write: a collection that
-- is not attached is a warning; and whether the table has that column, and the column that value, the worker finds
-- out, who refuses the touch with its error. The settings are those of `touch_template`, so that a date is the same day
-- for everybody. No table is read here: in a serializable transaction that could fail the commit.
create function catchword.touch_later(p_collection text, p_row_column text, p_value text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_collection is null or p_row_column is null or p_value is null then
    return false;
  elsif p_collection ~ '[$][0-9]+$' then
    raise warning 'catchword.touch_later: % is one schema of the collection %, and nothing was scheduled; name the '
      'collection', p_collection, split_part(p_collection, '$', 1);
    return false;
  elsif to_regprocedure(format('catchword.%I()', p_collection || '_inserted')) is null
        and not exists (select from pg_proc where proname > p_collection || '$' and proname < p_collection || '%'
                                              and pronamespace = 'catchword'::regnamespace) then
    raise warning 'catchword.touch_later: there is no collection %, and nothing was scheduled', p_collection;
    return false;
  end if;
  insert into catchword.job (name, collection, key, priority, tag, traceparent)
  values ('touch', p_collection, catchword.relation_of(p_row_column) || '=' || p_value,
          catchword.priority_quick(),
          coalesce(nullif(left(current_setting('catchword.tag', true), 100), ''), 'touch'),
          nullif(left(current_setting('catchword.traceparent', true), 55), ''));
  return true;
end $$;
comment on function catchword.touch_later(text, text, text)
  is 'for triggers of your own: gives every row whose column has this value a new number, after the commit; '
     'false: nothing was scheduled';

create function catchword.touch_later(p_collection text, p_row_column text, p_value anyelement) returns boolean
language sql security definer set search_path = pg_catalog, pg_temp
set datestyle = 'ISO, YMD' set intervalstyle = 'postgres' set timezone = 'UTC' set bytea_output = 'hex'
set extra_float_digits = 3 set lc_monetary = 'C' as $$
  select catchword.touch_later(p_collection, p_row_column, p_value::text)
$$;
comment on function catchword.touch_later(text, text, anyelement) is 'the same for a value of any type';

-- How the rows of a touch are found, by the part of its key before the `=`: by the key itself (none), by a column, or
-- as an entry of `touches` says (#). `$1` are the values, as text. Nobody knows any more: null.
create function catchword.names_of_touch(p_collection catchword.collection, p_relation text) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  with said (relation) as (
    select regexp_replace(p_relation, '^[^!/]*/', '')
  ),
  entry (touch, made) as (
    select t, t -> 'made' from said, jsonb_array_elements(p_collection.touches) as t
     where relation like '#%' and t -> 'made' ->> 'entry' = substr(relation, 2) limit 1
  ),
  columns (name, n, type, element) as (
    select catchword.quoted(a.attname), wanted.n, a.atttypid, catchword.element_type(a.atttypid)
      from (select catchword.column_of(relation), 1 from said where relation not like '#%' and relation not like '!%'
            union all
            select c.name, c.n
              from entry, unnest(catchword.names_in(touch -> 'row_column')) with ordinality as c (name, n)
           ) as wanted (name, n)
      join pg_attribute a on a.attrelid = p_collection.source and a.attname = wanted.name
                         and a.attnum > 0 and not a.attisdropped
  ),
  -- -1 and not null: a null would make "character" of char(20), and that cuts the value to its first letter
  found (refers) as (
    select string_agg(around, '$1' order by n) from jsonb_array_elements_text(
             catchword.names_of(p_collection) -> 't_at') with ordinality as e (around, n) where p_relation = ''
    union all
    select case when count(*) > 1
                then format('exists (select from unnest($1::text[]) as e (v) where %s)', string_agg(
                       format('t.%s %s (e.v::jsonb ->> %s)::%s', name, catchword.equality(type), n - 1,
                              format_type(type, -1)), ' and ' order by n))
                when bool_and(element is not null)
                then format('t.%s && $1::text[]::%s[]', min(name), min(format_type(element, -1)))
                else format('t.%s %s any($1::text[]::%s[])', min(name), min(catchword.equality(type)),
                            min(format_type(type, -1))) end
      from columns having count(*) > 0
  )
  select catchword.names_of(p_collection) || jsonb_build_object(
           'refers', coalesce(found.refers, 'false'),
           'query', coalesce(entry.made ->> 'query', ''),
           'k_names', (select string_agg('k' || n, ', ' order by n)
                         from generate_series(1, cardinality(p_collection.key_columns)
                                                 + (p_collection.schema is not null)::integer) as n))
    from (values (1)) as one (row) left join entry on true left join found on found.refers is not null
   where found.refers is not null or entry.made ? 'query'
$$;
comment on function catchword.names_of_touch
  is 'what the names in a template stand for, of rows that refer to a related table; null: nobody knows which rows';

-- The members that a touch means: the one whose schema its key begins with, or all.
create function catchword.members_of_touch(p_collection text, p_relation text) returns setof catchword.collection
language sql stable set search_path = pg_catalog, pg_temp as $$
  select m.* from catchword.members(p_collection) as m
   where m.schema is null or p_relation ~ '^(!|[^/]*$)'
      or m.schema = catchword.column_of(split_part(p_relation, '/', 1))
$$;
comment on function catchword.members_of_touch is 'the members that have the rows of a touch; or the collection itself';

-- A walk over many schemas goes from one to the next. Its cursor is the last key, or a schema with nothing behind the
-- slash: then that one begins.
create function catchword.behind_in(p_member catchword.collection, p_cursor text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_member.schema is null then p_cursor
              when catchword.schema_in(p_cursor) = p_member.schema and p_cursor not like '%/' then p_cursor end
$$;
comment on function catchword.behind_in is 'the cursor of a walk within one member; null: from its beginning';

create function catchword.members_behind(p_collection text, p_cursor text) returns setof catchword.collection
language sql stable set search_path = pg_catalog, pg_temp as $$
  select m.* from catchword.members(p_collection) as m
   where m.schema is null or p_cursor is null or m.schema >= catchword.schema_in(p_cursor) collate "C"
$$;
comment on function catchword.members_behind
  is 'the members that a walk has still to come to; or the collection itself';

create function catchword.beginning_of(p_member catchword.collection) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select replace(replace(p_member.schema, '%', '%25'), '/', '%2F') || '/'
$$;
comment on function catchword.beginning_of is 'the cursor of a walk that comes to a member next';

-- For an audit: what an open touch will come to. One that fails looks at nobody soon, and one that has come past a key
-- does not come back.
create function catchword.touched_soon(p_collection text, p_keys text[]) returns text[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  m catchword.collection;
  open_touches record;
  names jsonb;
  reached text[];
  all_reached text[] := '{}';
begin
  if p_keys = '{}' then
    return '{}';
  end if;
  for open_touches in
    select split_part(key, '=', 1) as relation, nullif(substr(cursor, 2), '') as behind,
           array_agg(distinct substr(key, position('=' in key) + 1)) as related_values
      from catchword.job where name = 'touch' and collection = p_collection and attempts = 0 group by 1, 2
  loop
    for m in select * from catchword.members_of_touch(p_collection, open_touches.relation) loop
      names := catchword.names_of_touch(m, open_touches.relation);
      continue when names is null or catchword.schema_in(open_touches.behind) > m.schema collate "C";
      execute catchword.fill(case when names ->> 'query' = '' then $t$
        select array(
          select {t_key} from {rows} t
           where {t_at $2} and {refers} and ($3 is null or {t_after $3}))$t$ else $t$
        select array(
          select distinct {k_key} from ({query}) as k ({k_names})
           where {k_at $2} and ($3 is null or {k_after $3}))$t$ end, names)
        into reached
        using open_touches.related_values, p_keys, catchword.behind_in(m, open_touches.behind);
      all_reached := all_reached || reached;
    end loop;
  end loop;
  return all_reached;
exception when data_exception or syntax_error_or_access_rule_violation then
  -- a value that is not of the column's type, a table that is gone: the step that meets it will say so
  return p_keys;
end $$;
comment on function catchword.touched_soon
  is 'of these keys, those that have a row to which an open touch has not come yet';

-- Worker: one small step of what changes of related tables left behind. Rows are found now, after the change was
-- committed: a row that was being inserted at that moment is found too. Several touches of one column go together
-- while their rows fit into one step; a larger one goes alone, behind its cursor. Where even that is too slow, because
-- no index serves the column, the table is walked in the order of its keys: so each step is bounded, and the last one
-- comes.
--
-- The parts come first: which touches, which rows, what becomes of touches that fail, and the jobs.
create function catchword.claim_touches(
  p_collection text,
  out ids bigint[], out relation text, out related_values text[], out at_cursor text, out since timestamptz
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  first_job record;
begin
  select id, key, cursor, enqueued_at into first_job from catchword.job
   where name = 'touch' and collection = p_collection and scheduled_at <= now()
   order by enqueued_at, id limit 1 for update skip locked;
  if not found then
    return;
  end if;
  relation := split_part(first_job.key, '=', 1);
  at_cursor := first_job.cursor;
  since := first_job.enqueued_at;
  if at_cursor is null or at_cursor like '~%' then
    select array_agg(due.id), array_agg(substr(due.key, length(relation) + 2)) into ids, related_values from (
      select j.id, j.key from catchword.job j
       where j.name = 'touch' and j.collection = p_collection and j.scheduled_at <= now()
         and j.cursor is not distinct from at_cursor and split_part(j.key, '=', 1) = relation
       order by j.enqueued_at, j.id limit 500 for update skip locked) as due;
  else
    ids := array[first_job.id];
    related_values := array[substr(first_job.key, length(relation) + 2)];
  end if;
end $$;
comment on function catchword.claim_touches is 'the next due touches that can be expanded together; ids is null: none';

-- Why nobody knows which rows a touch means.
create function catchword.refuse_relation(p_collection catchword.collection, p_relation text, p_values text[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if p_relation like '!%' then
    raise exception 'a change of % could not be followed (%), so documents may be old that show it: correct touches or '
      'the row, then run: catchword reindex % --all --rewrite',
      substr(p_relation, 2), array_to_string(p_values, '; '), catchword.whole_name(p_collection);
  elsif p_relation ~ '^([^/]*/)?#' then
    raise exception 'the entry of touches that this change belongs to is gone, so documents may be old that show it: '
      'run: catchword reindex % --all --rewrite', catchword.whole_name(p_collection);
  end if;
  raise exception 'table % has no column %', catchword.full_name(p_collection.source),
    catchword.column_of(regexp_replace(p_relation, '^[^/]*/', ''));
end $$;
comment on function catchword.refuse_relation is 'raises an error that says why the rows of a touch cannot be found';

-- Rows are found by an index, or by walking the table in the order of its keys, where finding them is too slow. A query
-- of somebody's own is asked for a page of keys, and of a walk for those of a page of the table.
create function catchword.find_touched(
  p_collection catchword.collection, p_relation text, p_values text[], p_walked boolean, p_behind text, p_rows integer,
  out found_keys text[], out last_key text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  names constant jsonb := catchword.names_of_touch(p_collection, p_relation);
  asked constant boolean := names ->> 'query' <> '';
  page text[];
begin
  if names is null then
    perform catchword.refuse_relation(p_collection, p_relation, p_values);
  elsif asked and p_walked then
    execute catchword.fill($t$
      select array(select {t_key} from {rows} t
                    where ($1 is null or {t_after $1}) order by {t_columns} limit $2)$t$, names)
      into page using p_behind, p_rows * 10;
    execute catchword.fill($t$
      select array(select distinct {k_key} from ({query}) as k ({k_names}) where {k_at $2})$t$, names)
      into found_keys using p_values, page;
    last_key := page[p_rows * 10];
  elsif asked then
    execute catchword.fill($t$
      select array(select {k_key} from (
        select {k_columns} from ({query}) as k ({k_names})
         where ({k_columns}) is not null and ($2 is null or {k_after $2})
         group by {k_columns} order by {k_columns} limit $3) as k ({k_names}))$t$, names)
      into page using p_values, p_behind, p_rows + 1;
    last_key := case when cardinality(page) > p_rows then page[p_rows] end;
    -- it may know keys that have no row
    found_keys := catchword.rows_of(catchword.whole_name(p_collection), page[1:p_rows]);
  elsif p_walked then
    execute catchword.fill($t$
      select array_agg(page.key order by page.n) filter (where page.refers), (array_agg(page.key order by page.n))[$3]
        from (select {t_key} as key, {refers} as refers, row_number() over (order by {t_columns}) as n
                from {rows} t
               where ($2 is null or {t_after $2})
               order by {t_columns} limit $3) as page$t$, names)
      into found_keys, last_key using p_values, p_behind, p_rows * 10;
    found_keys := coalesce(found_keys, '{}');
  else
    execute catchword.fill($t$
      select array(
        select {t_key} from {rows} t
         where {refers} and ($2 is null or {t_after $2})
         order by {t_columns} limit $3)$t$, names)
      into found_keys using p_values, p_behind, p_rows + 1;
    last_key := case when cardinality(found_keys) > p_rows then found_keys[p_rows] end;
    found_keys := found_keys[1:p_rows];
  end if;
end $$;
comment on function catchword.find_touched is 'rows that refer to these values; last_key is null: there are no more';

-- A few members in one step: each that is read stays locked until its end.
create function catchword.find_touched_in_all(
  p_collection text, p_relation text, p_values text[], p_walked boolean, p_behind text, p_rows integer,
  out found_keys text[], out last_key text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  m catchword.collection;
  here record;
  seen integer := 0;
begin
  found_keys := '{}';
  for m in
    select t.* from catchword.members_of_touch(p_collection, p_relation) as t
     where exists (select from catchword.members_behind(p_collection, p_behind) as b where b.name = t.name)
       -- a touch of one row names its member
       and (p_relation <> '' or t.schema is null
            or t.schema in (select catchword.schema_in(v) from unnest(p_values) as v))
  loop
    if seen = 20 or seen > 0 and cardinality(found_keys) >= p_rows then
      last_key := catchword.beginning_of(m);
      return;
    end if;
    select * into here from catchword.find_touched(
      m, p_relation, p_values, p_walked, catchword.behind_in(m, p_behind), p_rows);
    found_keys := found_keys || here.found_keys;
    if here.last_key is not null then
      last_key := here.last_key;
      return;
    end if;
    seen := seen + 1;
  end loop;
end $$;
comment on function catchword.find_touched_in_all
  is 'rows of a collection, or of some of its members, that refer to these values; last_key is null: there are no more';

-- For migrate and doctor: how Postgres would find the rows of each entry if reading whole tables were the last thing to
-- do. An index that serves it is then in the plan, however few rows there are.
create function catchword.touch_plans(p_collection text)
returns table (related text, found_by text, plan json, problem text, remedy text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  col catchword.collection;
  entry jsonb;
  names jsonb;
begin
  -- the members are alike, and the largest shows most
  select m.* into strict col from catchword.members(p_collection) as m
   order by catchword.about_rows(m.source) desc, m.name limit 1;
  for entry in select t from jsonb_array_elements(col.touches) as t loop
    related := entry ->> 'table';
    found_by := coalesce(
      entry ->> 'keys',
      (select string_agg(format('%I', name), ', ') from unnest(catchword.names_in(entry -> 'row_column')) as name));
    names := catchword.names_of_touch(col, catchword.relation_of_touch(entry));
    remedy := case
      when entry ? 'keys' then 'give the tables that it reads an index for that'
      else format('run: create index concurrently on %s %s(%s)', catchword.full_name(col.source),
                  (select 'using gin ' from pg_attribute a
                    where a.attrelid = col.source and a.attname = entry ->> 'row_column'
                      and catchword.element_type(a.atttypid) is not null), found_by) end;
    plan := null;
    problem := case when names is null then 'there is no such column' end;
    if names is null then
      return next;
      continue;
    end if;
    begin
      execute 'explain (format json) ' || catchword.fill(
        case when entry ? 'keys' then '{query}' else 'select from {rows} t where {refers}' end, names)
        into plan
        using array[case when jsonb_array_length(entry -> 'made' -> 'types') > 1
                         then (select jsonb_agg(null::text) from jsonb_array_elements(entry -> 'made' -> 'types'))::text
                    end];
    exception when data_exception or syntax_error_or_access_rule_violation then
      problem := sqlerrm;
    end;
    return next;
  end loop;
end $$;
comment on function catchword.touch_plans
  is 'how the rows of each related table are found: the plan, or why there is none';

create function catchword.postpone_touches(p_ids bigint[], p_why text, p_walk boolean) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  update catchword.job
     set last_error = left(p_why, 300), scheduled_at = now() + interval '5 seconds' * (1 + random()),
         priority = greatest(priority, catchword.priority_live()),
         cursor = case when p_walk then '~' || coalesce(substr(cursor, 2), '') else cursor end
   where id = any(p_ids);
$$;
comment on function catchword.postpone_touches
  is 'puts touches off by some seconds; p_walk: from now on they walk the table';

create function catchword.refuse_touch(p_id bigint, p_problem text) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  with refused as (
    update catchword.job
       set attempts = attempts + 1, last_error = left(p_problem, 300), cursor = coalesce(cursor, '='),
           scheduled_at = catchword.retry_at(attempts), priority = greatest(priority, catchword.priority_live())
     where id = p_id returning *)
  insert into catchword.dead_job
    (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error,
     traceparent, cursor, died_at, reason)
  select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error,
         traceparent, cursor, now(), 'refused'
    from refused where attempts >= 5;
  delete from catchword.job j using catchword.dead_job d where j.id = p_id and d.id = j.id;
$$;
comment on function catchword.refuse_touch is 'pushes a touch back that failed alone; the fifth time it is given up';

create function catchword.finish_touches(p_ids bigint[], p_cursor text) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  delete from catchword.job where id = any(p_ids) and p_cursor is null;
  update catchword.job set cursor = p_cursor, last_error = null where id = any(p_ids) and p_cursor is not null;
$$;
comment on function catchword.finish_touches is 'ends touches, or remembers how far they came';

create function catchword.schedule_touched(p_collection text, p_keys text[], p_live boolean) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  base timestamptz;
begin
  if p_live and cardinality(p_keys) <= 1000 then
    insert into catchword.job (collection, key, priority, tag, lane)
    select p_collection, k, catchword.priority_quick(), 'touch', lane
      from unnest(p_keys, catchword.lanes_of(p_collection, p_keys)) as drawn (k, lane);
  else
    base := catchword.bulk_base(p_collection, catchword.priority_part());
    insert into catchword.job (collection, key, enqueued_at, priority, tag)
    select p_collection, k, base + n * interval '1 microsecond', catchword.priority_part(), 'touch'
      from unnest(p_keys) with ordinality as drawn (k, n) order by n;
  end if;
end $$;
comment on function catchword.schedule_touched
  is 'schedules rows that were touched; those of a large change like a part';

create function catchword.expand_touches(
  p_collection text, p_rows integer, out jobs integer, out touched integer, out slow text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  claimed record;
  walked boolean;
  behind text;
  rows record;
  drawn_keys text[];
  problem text;
begin
  jobs := 0; touched := 0;
  select * into claimed from catchword.claim_touches(p_collection);
  if claimed.ids is null then
    -- why one waits that was tried, if there is one
    select last_error into slow from catchword.job
     where name = 'touch' and collection = p_collection and last_error is not null order by enqueued_at, id limit 1;
    return;
  end if;
  jobs := cardinality(claimed.ids);
  walked := coalesce(claimed.at_cursor, '') like '~%';
  behind := nullif(substr(claimed.at_cursor, 2), '');

  begin
    select * into rows
      from catchword.find_touched_in_all(
        p_collection, claimed.relation, claimed.related_values, walked, behind, p_rows);
    if rows.last_key is not null and jobs > 1 and not walked then
      -- too many together: each alone from here on
      update catchword.job set cursor = '=' where id = any(claimed.ids);
      return;
    end if;
    drawn_keys := catchword.draw(p_collection, rows.found_keys);
  exception
    when query_canceled or lock_not_available or deadlock_detected or serialization_failure then
      -- nobody's fault: a lock, or more than could be done in the time. It is tried again with fewer rows, and nothing
      -- is charged
      get stacked diagnostics slow = message_text;
      -- out of time with so few rows: it is the finding that is slow
      perform catchword.postpone_touches(claimed.ids, slow, sqlstate = '57014' and p_rows <= 100);
      return;
    when others then
      -- a value that is not of the column's type, a column that is gone: tried alone, then given up
      get stacked diagnostics problem = message_text;
      if jobs > 1 then
        update catchword.job set cursor = coalesce('=' || behind, '=') where id = any(claimed.ids);
      else
        perform catchword.refuse_touch(claimed.ids[1], problem);
      end if;
      return;
  end;

  touched := cardinality(drawn_keys);
  perform catchword.schedule_touched(p_collection, drawn_keys, claimed.at_cursor is null);
  if touched < cardinality(rows.found_keys) then
    perform catchword.touch_again(
      p_collection, array(select unnest(rows.found_keys) except select unnest(drawn_keys)), claimed.since);
  end if;
  perform catchword.finish_touches(claimed.ids, case when walked then '~' else '=' end || rows.last_key);
end $$;
comment on function catchword.expand_touches
  is 'one step: touches rows that refer to changed rows of related tables; slow: it was too much, and why';

-- Worker and service: the ids of documents that are written for the first time. One that another key has is not taken.
create function catchword.name_documents(p_collection text, p_keys text[], p_ids text[])
returns table (key text, id text, taken_by text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  -- in one order: two that name the same documents must not wait for each other in a ring
  insert into catchword.document_id (collection, key, id)
  select p_collection, given.key, given.id from unnest(p_keys, p_ids) as given (key, id) order by given.key
  on conflict do nothing;
  return query
    select given.key, coalesce(mine.id, given.id),
           case when mine.id is null
                then coalesce((select d.key from catchword.document_id d
                                where d.collection = p_collection and d.id = given.id), 'of another transaction') end
      from unnest(p_keys, p_ids) as given (key, id)
      left join catchword.document_id mine on mine.collection = p_collection and mine.key = given.key;
end $$;
comment on function catchword.name_documents
  is 'writes down the ids of documents before they are sent; taken_by: another key has this id';

-- A number for keys that have a document and no row: the record of a delete that nobody recorded. No lock guards a row
-- that is not there, so the numbers are drawn first and the rows looked for afterwards: whoever updates a row that
-- comes later draws a higher number. Were a record above two numbers of one row, two documents would have one version.
create function catchword.record_gone(p_collection text, p_keys text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  gone_keys text[];
  numbers bigint[];
  recorded bigint;
begin
  select array_agg(k), array_agg(nextval('catchword.revision') + 1) into gone_keys, numbers
    from (select distinct unnest(p_keys)) as gone (k);
  insert into catchword.record (collection, key, revision)
  select p_collection, gone.key, gone.revision
    from unnest(gone_keys, numbers) as gone (key, revision)
   where gone.key not in (select key from catchword.rows_at(p_collection, gone_keys));
  get diagnostics recorded = row_count;
  return recorded;
end $$;
comment on function catchword.record_gone is 'records a new number for keys that have no row';

revoke execute on all functions in schema catchword from public;
