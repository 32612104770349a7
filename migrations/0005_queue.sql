-- What the worker and operators do by SQL. The functions that write are security definer, so that a worker's role
-- needs no right on the application's tables but to read them. Nobody may call them until grants.sql says so.

-- The first enqueued_at of a bulk: among what is due and was never refused, so that bulks of one priority interleave
-- one by one.
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
comment on function catchword.bulk_base
  is 'where a bulk begins in the walk, so that it interleaves with the bulks before it';

create function catchword.schedule(
  p_collection text, p_keys text[], p_tag text default 'manual', p_priority integer default 1, p_delay interval default '0'
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  type_name text;
  scheduled bigint;
begin
  select key_type into type_name from catchword.collection where name = p_collection;
  if not found then
    perform catchword.refuse(format('there is no collection %L', p_collection), 'select name from catchword.collection');
  end if;
  if p_delay > interval '1 hour' then
    -- what is due later is taken for the work of a clock that was ahead
    perform catchword.refuse(format('a delay of %s is longer than an hour', p_delay), 'schedule it when it is due');
  end if;
  -- the text of the key's own type: an upper-case uuid or ' 7' would otherwise never meet its row
  execute format('insert into catchword.job (collection, key, scheduled_at, priority, tag) select $1, k::%s::text, now() + $3, $4, $5 from unnest($2) as k', type_name)
    using p_collection, p_keys, p_delay, p_priority, left(p_tag, 100);
  get diagnostics scheduled = row_count;
  return scheduled;
end $$;
comment on function catchword.schedule is 'schedules keys by hand, from any language';

-- A new number for rows, without writing to them: a trigger of the table would fire, and it is not ours. A row is
-- locked, a number is drawn under that lock, and the number is recorded: whoever writes the row later draws a higher
-- one. Rows are locked in the order of their keys; one that somebody else holds is passed over, and the caller meets
-- it again. It leaves no job: the caller does.
create function catchword.draw(p_collection text, p_keys text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  locked_keys text[];
begin
  select * into strict col from catchword.collection where name = p_collection;
  execute format(
    'select array(select locked.key::text from (
       select t.%2$I as key from only %1$s t where t.%2$I = any($1::text[]::%3$s[]) order by t.%2$I for no key update skip locked) as locked)',
    catchword.full_name(col.source), col.key_column, col.key_type)
    into locked_keys using p_keys;
  -- whatever is recorded by now lies below the numbers that are drawn next
  delete from catchword.record r using (
    select o.key, o.revision from catchword.record o where o.collection = p_collection and o.key = any(locked_keys) for update skip locked) as older
   where r.collection = p_collection and r.key = older.key and r.revision = older.revision;
  insert into catchword.record (collection, key, revision) select p_collection, k, nextval('catchword.revision') from unnest(locked_keys) k;
  return locked_keys;
end $$;
comment on function catchword.draw
  is 'draws and records a new number for rows; returns the keys of those that it could lock';

create function catchword.touch(p_collection text, p_keys text[]) returns text[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  drawn_keys constant text[] := catchword.draw(p_collection, p_keys);
begin
  insert into catchword.job (collection, key, priority, tag) select p_collection, k, 1, 'touch' from unnest(drawn_keys) k;
  return drawn_keys;
end $$;
comment on function catchword.touch
  is 'gives rows a new version, and a job each; returns the keys of those that it could lock';

create function catchword.rows_of(p_collection text, p_keys text[]) returns text[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  found_keys text[];
begin
  select * into strict col from catchword.collection where name = p_collection;
  execute format('select array(select t.%2$I::text from only %1$s t where t.%2$I = any($1::text[]::%3$s[]))', catchword.full_name(col.source), col.key_column, col.key_type)
    into found_keys using p_keys;
  return found_keys;
end $$;
comment on function catchword.rows_of is 'of these keys, those that have a row';

create function catchword.touch_later(p_collection text, p_keys text[], p_enqueued_at timestamptz default now()) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  insert into catchword.job (name, collection, key, enqueued_at, scheduled_at, priority, tag)
  select 'touch', p_collection, '=' || k, p_enqueued_at, now() + interval '1 second' * (1 + random()), 1, 'touch' from unnest(p_keys) k
$$;
comment on function catchword.touch_later is 'leaves a touch for each of these keys, due in one to two seconds';

-- Rows that could not be locked are touched in a moment, each by a job of its own. For an audit: what an open touch
-- will come to. One that fails looks at nobody soon, and one that has come past a key does not come back.
create function catchword.touched_soon(p_collection text, p_keys text[]) returns text[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  open_touches record;
  relation text;
  relation_type text;
  equals text;
  reached text[];
  all_reached text[] := '{}';
begin
  if p_keys = '{}' then
    return '{}';
  end if;
  select * into strict col from catchword.collection where name = p_collection;
  for open_touches in
    select split_part(key, '=', 1) as relation, nullif(substr(cursor, 2), '') as behind, array_agg(distinct substr(key, position('=' in key) + 1)) as related_values
      from catchword.job where name = 'touch' and collection = p_collection and attempts = 0 group by 1, 2
  loop
    relation := coalesce(nullif(open_touches.relation, ''), col.key_column);
    select format_type(atttypid, -1), catchword.equality(atttypid) into relation_type, equals from pg_catalog.pg_attribute
     where attrelid = col.source and attname = relation and attnum > 0 and not attisdropped;
    if found then
      execute format('select array(select t.%2$I::text from only %1$s t where t.%2$I = any($1::text[]::%3$s[]) and t.%4$I %6$s any($2::text[]::%5$s[]) and ($3 is null or t.%2$I > $3::%3$s))',
                     catchword.full_name(col.source), col.key_column, col.key_type, relation, relation_type, equals)
        into reached using p_keys, open_touches.related_values, open_touches.behind;
      all_reached := all_reached || reached;
    end if;
  end loop;
  return all_reached;
exception when data_exception then
  -- a value that is not of the column's type: the step that meets it will say so
  return p_keys;
end $$;
comment on function catchword.touched_soon
  is 'of these keys, those that have a row to which an open touch has not come yet';

-- Worker: one small step of what changes of related tables left behind. Rows are found now, after the change was
-- committed: a row that was being inserted at that moment is found too. Several touches of one column go together
-- while their rows fit into one step; a larger one goes alone, behind its cursor. Where even that is too slow, because
-- no index serves the column, the table is walked in the order of its keys: so each step is bounded, and the last one
-- comes.
create function catchword.expand_touches(p_collection text, p_rows integer, out jobs integer, out touched integer, out slow text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  first_job record;
  relation text;
  relation_type text;
  equals text;
  ids bigint[];
  related_values text[];
  behind text;
  walked boolean;
  found_keys text[];
  drawn_keys text[];
  last_key text;
  problem text;
  base timestamptz;
begin
  jobs := 0; touched := 0;
  select * into strict col from catchword.collection where name = p_collection;
  select id, key, cursor, enqueued_at into first_job from catchword.job
   where name = 'touch' and collection = p_collection and scheduled_at <= now()
   order by enqueued_at, id limit 1 for update skip locked;
  if not found then
    -- why one waits that was tried, if there is one
    select last_error into slow from catchword.job where name = 'touch' and collection = p_collection and last_error is not null order by enqueued_at, id limit 1;
    return;
  end if;
  relation := split_part(first_job.key, '=', 1);
  ids := array[first_job.id];
  related_values := array[substr(first_job.key, length(relation) + 2)];
  walked := coalesce(first_job.cursor, '') like '~%';
  behind := nullif(substr(first_job.cursor, 2), '');
  if first_job.cursor is null or walked then
    select array_agg(id), array_agg(substr(key, length(relation) + 2)) into ids, related_values from (
      select id, key from catchword.job
       where name = 'touch' and collection = p_collection and scheduled_at <= now() and cursor is not distinct from first_job.cursor and split_part(key, '=', 1) = relation
       order by enqueued_at, id limit 500 for update skip locked) as due;
  end if;
  jobs := cardinality(ids);

  begin
    -- -1 and not null: a null would make "character" of char(20), and that cuts the value to its first letter
    relation := coalesce(nullif(relation, ''), col.key_column);
    select format_type(atttypid, -1), catchword.equality(atttypid) into relation_type, equals from pg_catalog.pg_attribute
     where attrelid = col.source and attname = relation and attnum > 0 and not attisdropped;
    if not found then
      raise exception 'table % has no column %', catchword.full_name(col.source), relation;
    end if;
    if walked then
      execute format('select array_agg(page.key order by page.n) filter (where page.refers), (array_agg(page.key order by page.n))[$4]
         from (select t.%2$I::text as key, t.%4$I %6$s any($1::text[]::%5$s[]) as refers, row_number() over (order by t.%2$I) as n
                 from only %1$s t where ($2 is null or t.%2$I > $2::%3$s) order by t.%2$I limit $3) as page',
        catchword.full_name(col.source), col.key_column, col.key_type, relation, relation_type, equals)
        into found_keys, last_key using related_values, behind, p_rows * 10, p_rows * 10;
      found_keys := coalesce(found_keys, '{}');
    else
      execute format('select array(select t.%2$I::text from only %1$s t where t.%4$I %6$s any($1::text[]::%5$s[]) and ($2 is null or t.%2$I > $2::%3$s) order by t.%2$I limit $3)',
                     catchword.full_name(col.source), col.key_column, col.key_type, relation, relation_type, equals)
        into found_keys using related_values, behind, p_rows + 1;
      last_key := case when cardinality(found_keys) > p_rows then found_keys[p_rows] end;
      if last_key is not null and jobs > 1 then
        -- too many together: each alone from here on
        update catchword.job set cursor = '=' where id = any(ids);
        return;
      end if;
      found_keys := found_keys[1:p_rows];
    end if;
    drawn_keys := catchword.draw(p_collection, found_keys);
  exception
    when query_canceled or lock_not_available or deadlock_detected or serialization_failure then
      -- nobody's fault: a lock, or more than could be done in the time. It is tried again with fewer rows, and nothing
      -- is charged
      get stacked diagnostics slow = message_text;
      update catchword.job set last_error = left(slow, 300), scheduled_at = now() + interval '5 seconds' * (1 + random()),
             -- so few rows, and still too slow: it is the finding
             cursor = case when sqlstate = '57014' and p_rows <= 100 then '~' || coalesce(substr(cursor, 2), '') else cursor end
       where id = any(ids);
      return;
    when others then
      -- a value that is not of the column's type, a column that is gone: tried alone, then given up
      get stacked diagnostics problem = message_text;
      if jobs > 1 then
        update catchword.job set cursor = coalesce('=' || behind, '=') where id = any(ids);
        return;
      end if;
      with refused as (
        update catchword.job set attempts = attempts + 1, last_error = left(problem, 300), cursor = coalesce(cursor, '='),
               scheduled_at = now() + least(interval '1 minute' * 2 ^ attempts, interval '1 hour') * (0.75 + random() / 2)
         where id = first_job.id returning *)
      insert into catchword.dead_job
      select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, now(), 'refused' from refused where attempts >= 5;
      delete from catchword.job j using catchword.dead_job d where j.id = first_job.id and d.id = j.id;
      return;
  end;

  touched := cardinality(drawn_keys);
  if first_job.cursor is null and touched <= 1000 then
    insert into catchword.job (collection, key, priority, tag) select p_collection, k, 1, 'touch' from unnest(drawn_keys) k;
  else
    base := catchword.bulk_base(p_collection, 100);
    insert into catchword.job (collection, key, enqueued_at, priority, tag)
    select p_collection, k, base + n * interval '1 microsecond', 100, 'touch' from unnest(drawn_keys) with ordinality as drawn (k, n) order by n;
  end if;
  if touched < cardinality(found_keys) then
    perform catchword.touch_later(p_collection, array(select unnest(found_keys) except select unnest(drawn_keys)), first_job.enqueued_at);
  end if;
  if last_key is null then
    delete from catchword.job where id = any(ids);
  else
    update catchword.job set cursor = case when walked then '~' else '=' end || last_key, last_error = null where id = any(ids);
  end if;
end $$;
comment on function catchword.expand_touches
  is 'one step: touches rows that refer to changed rows of related tables; slow: it was too much, and why';

-- A number for keys that have a document and no row: the record of a delete that nobody recorded. No lock guards a row
-- that is not there, so the numbers are drawn first and the rows looked for afterwards: whoever updates a row that
-- comes later draws a higher number. Were a record above two numbers of one row, two documents would have one version.
create function catchword.record_gone(p_collection text, p_keys text[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  gone_keys text[];
  numbers bigint[];
  recorded bigint;
begin
  select * into strict col from catchword.collection where name = p_collection;
  select array_agg(k), array_agg(nextval('catchword.revision') + 1) into gone_keys, numbers from (select distinct unnest(p_keys)) as gone (k);
  execute format(
    'insert into catchword.record (collection, key, revision)
     select $1, gone.key, gone.revision from (select g.key, g.revision, %4$s as fits from unnest($2, $3) as g (key, revision)) as gone
      where not exists (select from only %1$s t where t.%2$I = case when gone.fits then gone.key::%3$s end)',
    catchword.full_name(col.source), col.key_column, col.key_type, catchword.key_condition(col.key_type, 'g.key'))
    using p_collection, gone_keys, numbers;
  get diagnostics recorded = row_count;
  return recorded;
end $$;
comment on function catchword.record_gone is 'records a new number for keys that have no row';

revoke execute on all functions in schema catchword from public;
