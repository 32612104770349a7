-- Reindex schedules jobs and indexes nothing itself. One function makes the query for a scope; identifiers are quoted here, values are bound.

create function catchword.reindex_query(r catchword.reindex) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  source_name text;
  scope_column text;
  conditions text := '';
begin
  select * into strict col from catchword.collection where name = r.collection;
  select format('%I.%I', nspname, relname) into strict source_name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = col.source;
  -- $1 value, $2 from, $3 to, $4 keys, $5 cursor
  if r.keys is not null and r.hidden then
    -- keys named one by one are taken as they are, also where the row is gone
    return format('select k::%1$s as key from unnest($4) as k where ($5 is null or k::%1$s > $5::%1$s)', col.key_type);
  end if;
  if r.scope is not null then
    scope_column := col.scopes ->> r.scope;
    conditions := conditions || (select format(' and t.%I = $1::%s', attname, format_type(atttypid, null))
      from pg_catalog.pg_attribute where attrelid = col.source and attname = scope_column and attnum > 0 and not attisdropped);
  end if;
  if r.period_from is not null then
    conditions := conditions || format(' and t.%1$I >= $2 and t.%1$I < $3', col.period);
  end if;
  if r.keys is not null then
    conditions := conditions || format(' and t.%I = any($4::%s[])', col.key_column, col.key_type);
  end if;
  if not r.hidden then
    conditions := conditions || format(' and exists (select from %s v where v.key = t.%I)', col.view, col.key_column);
  end if;
  return format('select t.%2$I as key from only %1$s t where ($5 is null or t.%2$I > $5::%3$s)%4$s', source_name, col.key_column, col.key_type, conditions);
end $$;
comment on function catchword.reindex_query is 'the query for the keys of a reindex';

create function catchword.reindex_start(
  p_collection text, p_scope text default null, p_value text default null,
  p_from timestamptz default null, p_to timestamptz default null, p_keys text[] default null,
  p_hidden boolean default false, p_anew boolean default false, p_tag text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  col catchword.collection;
  whole constant boolean := p_scope is null and p_from is null and p_keys is null;
  bulk_priority constant integer := case when whole then 1000 else 100 end;
  canonical text[];
  new_id bigint;
begin
  select * into col from catchword.collection where name = p_collection;
  if not found then
    perform catchword.refuse(format('there is no collection %L', p_collection), 'select name from catchword.collection');
  elsif p_scope is not null and not col.scopes ? p_scope then
    perform catchword.refuse(format('collection %s has no scope %L', p_collection, p_scope),
      coalesce('it has ' || (select string_agg(s, ', ' order by s) from jsonb_object_keys(col.scopes) s), 'name one in the configuration: scopes = { user = "userid" }'));
  elsif (p_scope is null) <> (p_value is null) then
    perform catchword.refuse('a scope goes with a value', 'give both');
  elsif (p_from is null) <> (p_to is null) or p_from >= p_to then
    perform catchword.refuse('a period has a beginning and a later end', 'give the earlier time first');
  elsif p_from is not null and col.period is null then
    perform catchword.refuse(format('collection %s has no period', p_collection), 'name its column in the configuration: period = "updated"');
  end if;
  if p_keys is not null then
    execute format('select array(select distinct k::%s::text from unnest($1) as k)', col.key_type) into canonical using p_keys;
  end if;
  if whole and p_anew then
    perform catchword.raise_floor(p_collection);
  end if;
  insert into catchword.reindex (collection, scope, value, period_from, period_to, keys, hidden, anew, priority, tag, base)
  values (p_collection, p_scope, p_value, p_from, p_to, canonical, p_hidden, p_anew, bulk_priority,
          left(coalesce(p_tag, 'reindex' || coalesce('.' || p_scope, case when p_keys is not null then '.ids' when p_from is not null then '.between' else '.all' end)), 100),
          catchword.bulk_base(p_collection, bulk_priority))
  returning id into new_id;
  return new_id;
end $$;
comment on function catchword.reindex_start is 'writes down what is to be reindexed; reindex_chunk then does it piece by piece';

create function catchword.reindex_count(p_id bigint) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.reindex;
  counted bigint;
begin
  select * into strict r from catchword.reindex where id = p_id;
  execute format('select count(*) from (%s) as picked', catchword.reindex_query(r))
    into counted using r.value, r.period_from, r.period_to, r.keys, r.cursor;
  return counted;
end $$;
comment on function catchword.reindex_count is 'how many keys a reindex still has to schedule';

create function catchword.reindex_chunk(p_id bigint, p_limit integer default 10000) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  r catchword.reindex;
  picked_keys text[];
  picked bigint;
begin
  -- two that resume the same reindex take turns
  select * into r from catchword.reindex where id = p_id for update;
  if not found then
    perform catchword.refuse(format('there is no reindex %s', p_id), 'select id, collection, scope, value from catchword.reindex');
  elsif r.finished_at is not null then
    return 0;
  end if;
  execute format('select array(select key::text from (%s order by key limit $6) as picked order by key)', catchword.reindex_query(r))
    into picked_keys using r.value, r.period_from, r.period_to, r.keys, r.cursor, p_limit;
  picked := cardinality(picked_keys);
  if r.anew and r.priority < 1000 then
    -- a new revision for each row; their own triggers leave the jobs
    perform set_config('catchword.tag', r.tag, true), set_config('catchword.delay', '0', true);
    perform catchword.touch(r.collection, picked_keys, p_wait => true);
  else
    insert into catchword.job (collection, key, enqueued_at, priority, tag)
    select r.collection, k, r.base + (r.scheduled + n) * interval '1 microsecond', r.priority, r.tag
      from unnest(picked_keys) with ordinality as t (k, n) order by n;
  end if;
  update catchword.reindex
     set scheduled = scheduled + picked, cursor = coalesce(picked_keys[picked], cursor),
         finished_at = case when picked < p_limit then now() end
   where id = p_id;
  if picked < p_limit then
    insert into catchword.journal (who, what, collection, detail, count)
    values (r.started_by, 'reindex', r.collection, concat_ws(' ', r.tag, r.value, case when r.anew then 'anew' end), r.scheduled + picked);
  end if;
  return picked;
end $$;
comment on function catchword.reindex_chunk is 'schedules the next keys of a reindex; fewer than asked for: it was the last chunk';

create function catchword.reindex(
  p_collection text, p_scope text default null, p_value text default null,
  p_from timestamptz default null, p_to timestamptz default null, p_keys text[] default null,
  p_hidden boolean default false, p_anew boolean default false, p_tag text default null
) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  new_id bigint;
  total bigint;
begin
  new_id := catchword.reindex_start(p_collection, p_scope, p_value, p_from, p_to, p_keys, p_hidden, p_anew, p_tag);
  loop
    exit when catchword.reindex_chunk(new_id, 10000) < 10000;
  end loop;
  select scheduled into total from catchword.reindex where id = new_id;
  return total;
end $$;
comment on function catchword.reindex is 'schedules a scope in the caller''s one transaction; for large ones: reindex_start, then call run_reindex';

-- A procedure can commit: each chunk its own short transaction, however large the scope.
create procedure catchword.run_reindex(p_id bigint, p_chunk integer default 10000)
language plpgsql as $$
begin
  loop
    exit when catchword.reindex_chunk(p_id, p_chunk) < p_chunk;
    commit;
  end loop;
end $$;
comment on procedure catchword.run_reindex is 'schedules a reindex chunk by chunk, committing in between; harmless to repeat';

-- nobody calls a function of this schema without a grant: see grants.sql
revoke execute on all functions in schema catchword from public;
revoke execute on procedure catchword.run_reindex from public;
