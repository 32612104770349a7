-- What a worker asks at each tick, in one question: an idle one costs the server next to nothing, however many collections there are.

create function catchword.problems(
  p_collection text, p_table text, p_key text, p_view text,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns table (problem text)
language sql stable set search_path = pg_catalog, pg_temp as $$
  select problem from catchword.broken_triggers(p_collection)
  union all
  -- a name that this session cannot resolve proves nothing: it may have another search_path than the migrator
  select format('the configuration says %s, and the collection was attached with %s', said, attached)
    from catchword.collection c,
         lateral (values (format('table = %s', p_table), c.source::text, catchword.named(p_table, p_path) <> c.source),
                         (format('key = %s', p_key), c.key_column::text, p_key <> c.key_column),
                         (format('view = %s', p_view), c.view, catchword.named(p_view, p_path) <> to_regclass(c.view))) as named (said, attached, differs)
   where c.name = p_collection and differs
$$;
comment on function catchword.problems is 'what is wrong with what the promises rest on, and whether the configuration still names it; no row: nothing';

-- Names are quoted by Postgres itself. A table or view that is gone yields null, which is an error and never "no rows".
create function catchword.attached(
  p_names text[], p_tables text[], p_keys text[], p_views text[],
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns table (name text, key_type text, targets text[], period text, table_name text, key_name text, revision_name text, period_name text,
               view_name text, view_exists boolean, paused text, problems text[], view_changed boolean, rebuilding boolean, installation uuid)
language sql stable set search_path = pg_catalog, pg_temp as $$
  select c.name, c.key_type, c.targets, c.period::text,
         (select format('%I.%I', n.nspname, r.relname) from pg_catalog.pg_class r join pg_catalog.pg_namespace n on n.oid = r.relnamespace where r.oid = c.source),
         format('%I', c.key_column),
         format('%I', c.revision_column),
         -- a column without a zone is read as UTC, whatever the session's zone
         (select format(case when a.atttypid = 'timestamptz'::regtype then 't.%I' else '(t.%I::timestamp at time zone ''utc'')' end, a.attname)
            from pg_catalog.pg_attribute a where a.attrelid = c.source and a.attname = c.period and a.attnum > 0 and not a.attisdropped),
         c.view,
         to_regclass(c.view) is not null,
         (select format('since %s by %s: %s', to_char(p.since at time zone 'utc', 'YYYY-MM-DD HH24:MI "UTC"'), p.by, p.reason) from catchword.pause p where p.collection = c.name),
         array(select f.problem from catchword.problems(c.name, said.source, said.key, said.view, p_path) f),
         c.filled_view is distinct from catchword.view_digest(c.view),
         exists (select from catchword.rebuild b where b.collection = c.name and b.finished_at is null),
         (select i.id from catchword.installation i)
    from catchword.collection c
    join unnest(p_names, p_tables, p_keys, p_views) as said (name, source, key, view) on said.name = c.name
$$;
comment on function catchword.attached is 'these collections as they are attached now, for a configuration that says so of them';

-- A worker that vanished is forgotten after a day: until then its absence is worth seeing.
create function catchword.renew_worker(
  p_id uuid, p_host text, p_version text, p_collections text[], p_blocked jsonb, p_breaker text, p_passed boolean
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  delete from catchword.worker where seen_at < now() - interval '1 day' and id <> p_id;
  insert into catchword.worker (id, host, version, collections, blocked, breaker, passed_at)
  values (p_id, p_host, p_version, p_collections, p_blocked, p_breaker, case when p_passed then now() end)
  on conflict (id) do update
     set collections = excluded.collections, blocked = excluded.blocked, breaker = excluded.breaker, seen_at = now(),
         passed_at = coalesce(excluded.passed_at, worker.passed_at);
$$;
comment on function catchword.renew_worker is 'a worker''s sign of life';

-- The beginning of a tick: which server this is, what is due, a sign of life. Where nothing is due, that was the pass.
-- The settings are those of a claim, and for its reasons (src/job/keep_the_plan.sql): it walks the queue as a claim does.
create function catchword.tick(
  p_id uuid, p_host text, p_version text, p_collections text[], p_blocked jsonb, p_breaker text, p_passed boolean,
  out standby boolean, out switched boolean, out due text[]
)
language plpgsql set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_sort = off as $$
begin
  standby := pg_is_in_recovery();
  if standby then
    return;
  end if;
  switched := catchword.note_server();
  -- bounded: whether a long queue has something due, its walk finds out
  due := array(
    select c.name from unnest(p_collections) as c (name)
     where (select count(*) >= 1000 or coalesce(bool_or(first.scheduled_at <= now()), false)
              from (select scheduled_at from catchword.job where collection = c.name order by priority, enqueued_at, id limit 1000) as first));
  perform catchword.renew_worker(p_id, p_host, p_version, p_collections, p_blocked, p_breaker, p_passed or due = '{}');
end $$;
comment on function catchword.tick is 'begins a worker''s tick: notes the server, says which collections may have due jobs, gives a sign of life';

revoke execute on all functions in schema catchword from public;
