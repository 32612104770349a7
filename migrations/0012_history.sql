-- The history: what each minute was like, so that `catchword history`, `catchword status --watch` and the console can
-- draw it without Prometheus. Writers pay nothing for it: what batches did is counted by the statement that settles
-- (`catchword.freshness`), and once a minute one worker's heartbeat adds it up and looks how long the queues are.

create table catchword.history (
  minute         timestamptz not null,
  collection     text not null,
  scheduled      integer not null,
  settled        integer not null,
  written        integer not null,
  pushed_back    integer not null,
  buried         integer not null,
  due            integer not null,
  waiting        integer not null,
  oldest_seconds real,
  fresh_p50      real,
  fresh_p99      real,
  primary key (minute, collection)
);
comment on table  catchword.history
  is 'a row per minute and collection, kept for eight days; no row: no worker was there in that minute';
comment on column catchword.history.minute is 'its beginning; the row is written when it is over';
comment on column catchword.history.collection is 'whose jobs';
comment on column catchword.history.scheduled
  is 'jobs that came: what the queue grew by and what left it; where it is too long to be counted, about so many, by '
     'the sequence of jobs';
comment on column catchword.history.settled is 'jobs that a look satisfied';
comment on column catchword.history.written is 'documents and tombstones that the loop wrote, in each index';
comment on column catchword.history.pushed_back is 'jobs that were refused and will be tried again';
comment on column catchword.history.buried is 'jobs that the loop gave up';
comment on column catchword.history.due is 'jobs that were due at the end of the minute; above 10,000 about so many';
comment on column catchword.history.waiting is 'jobs that were not due yet; above 10,000 about so many';
comment on column catchword.history.oldest_seconds
  is 'the age of the oldest change that was due or was put off, or else of the oldest due job; null: none was';
comment on column catchword.history.fresh_p50
  is 'half of the changes were seen in Elasticsearch within so many seconds; null: none was seen';
comment on column catchword.history.fresh_p99 is 'the same of 99 of a hundred';

-- What the next minute is compared with.
create table catchword.history_mark (
  collection text primary key,
  minute     timestamptz not null,
  jobs       bigint,
  gone       bigint not null,
  sequence   bigint not null
);
comment on table  catchword.history_mark is 'how each queue was when the history was last written';
comment on column catchword.history_mark.collection is 'whose queue';
comment on column catchword.history_mark.minute is 'the last minute that was dealt with, whether it has a row or not';
comment on column catchword.history_mark.jobs
  is 'how many jobs there were, without touches; null: too many to be counted';
comment on column catchword.history_mark.gone
  is 'jobs settled or buried since two minutes before, as far as it was committed then: a batch may be longer than a '
     'minute''s end';
comment on column catchword.history_mark.sequence is 'how far the sequence of jobs had come';

insert into catchword.turn values ('history');
comment on column catchword.turn.what
  is 'attach: attaching a table; revision: raising the sequence; history: writing the minute''s row';

-- Seconds are counted in buckets, each reaching 1.4 times as far as the one before: the first to 10 ms, the 41st to
-- three hours. Within a bucket they are taken to be spread evenly.
create function catchword.percentile(p_buckets bigint[], p_share double precision) returns double precision
language sql immutable set search_path = pg_catalog, pg_temp as $$
  with counted as (
    select b.n, b.changes, sum(b.changes) over (order by b.n) as up_to, sum(b.changes) over () as total
      from unnest(p_buckets) with ordinality as b (changes, n)
  )
  select r.low + (r.high - r.low) * greatest(p_share * c.total - (c.up_to - c.changes), 0) / c.changes
    from counted c,
         lateral (select case when c.n = 1 then 0 else 0.01 * 2 ^ ((c.n - 2) / 2.0) end::double precision,
                         (0.01 * 2 ^ ((c.n - 1) / 2.0))::double precision) as r (low, high)
   where c.changes > 0 and c.up_to >= p_share * c.total
   order by c.n limit 1
$$;
comment on function catchword.percentile
  is 'the seconds within which this share of the changes was seen, from the buckets of catchword.freshness';

-- As the census counts (src/job/census.sql), and for its reasons bounded: the first 10,000 of each priority.
create function catchword.queue_of(p_collection text)
returns table (due bigint, waiting bigint, touches bigint, oldest_seconds double precision, counted boolean)
language sql stable set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_sort = off as $$
  with recursive priorities as (
    (select j.priority from catchword.job j where j.collection = p_collection order by j.priority limit 1)
    union all
    select (select j.priority from catchword.job j where j.collection = p_collection and j.priority > p.priority
             order by j.priority limit 1)
      from priorities p where p.priority is not null
  ),
  delay as (
    select make_interval(secs => coalesce((select nullif(c.delay_seconds, 0) from catchword.collection c
                                            where c.name = p_collection), 60)) as length
  ),
  sampled as (
    select p.priority, count(*) as jobs,
           count(*) filter (where first.scheduled_at <= now()) as due,
           min(first.scheduled_at) filter (where first.scheduled_at <= now()) as oldest_due,
           min(least(first.enqueued_at, now())) filter (
             where first.scheduled_at <= now() or first.attempts > 0
                or first.scheduled_at <= now() + interval '30 seconds' and first.enqueued_at + d.length <= now()
           ) as oldest_change
      from (select q.priority from priorities q where q.priority is not null limit 20) as p
     cross join delay d
     cross join lateral (select j.scheduled_at, j.enqueued_at, j.attempts from catchword.job j
                          where j.collection = p_collection and j.priority = p.priority
                          order by j.enqueued_at, j.id limit 10000) as first
     group by p.priority
  )
  select coalesce(sum(s.due), 0)::bigint, coalesce(sum(s.jobs - s.due), 0)::bigint,
         (select count(*) from (select from catchword.job j where j.name = 'touch' and j.collection = p_collection
                                 limit 10000) as touch),
         extract(epoch from now() - coalesce(
           min(s.oldest_change) filter (where s.priority <= catchword.priority_live()),
           min(s.oldest_due)))::double precision,
         coalesce(bool_and(s.jobs < 10000), true)
    from sampled s
$$;
comment on function catchword.queue_of
  is 'how long the queue of a collection is and how old; counted: there were few enough to be counted, otherwise the '
     'numbers mean "at least"';

-- Where there are too many to be counted: what the planner knows, or a sample of some 200 pages where that is old.
create function catchword.about_jobs(p_collection text, out jobs bigint, out waiting bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  pages constant bigint := pg_relation_size('catchword.job') / current_setting('block_size')::bigint;
  percent constant real := 100 * least(200.0 / greatest(pages, 1), 1);
  is_known constant boolean := (
    select c.reltuples > 0 and pages < 1.5 * c.relpages
           and pg_stat_get_mod_since_analyze(c.oid) < 0.2 * c.reltuples
      from pg_class c where c.oid = 'catchword.job'::regclass);
  plan json;
begin
  if is_known then
    execute 'explain (format json) select from catchword.job where collection = $1' into plan using p_collection;
    jobs := (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric;
    execute 'explain (format json) select from catchword.job where collection = $1 and scheduled_at > now()'
      into plan using p_collection;
    waiting := least((plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric, jobs);
  else
    select count(*) * 100 / percent, count(*) filter (where j.scheduled_at > now()) * 100 / percent
      into jobs, waiting
      from catchword.job j tablesample system (percent) where j.collection = p_collection;
  end if;
end $$;
comment on function catchword.about_jobs is 'about how many jobs of a collection there are, and how many are not due';

-- Which minutes get a row: those in which a worker showed itself, or up to ten seconds before (a heartbeat comes each
-- 65 seconds where ticks are rarer), or in which something was counted. So it must be called before the heartbeat is
-- renewed. A minute without a worker stays without a row, and so does one in which Postgres was down.
--
-- A batch counts in the minute in which it began, and may end in the next: the last three minutes are added up again.
--
-- What came is what the queue grew by and what left it, both read in one snapshot. Where a queue is too long to be
-- counted, it has what is left of the sequence.
create function catchword.write_history(p_last timestamptz, p_new timestamptz) returns void
language sql set search_path = pg_catalog, pg_temp as $$
  with sampled as materialized (
    select c.name as collection, k.jobs as jobs_before, k.sequence as sequence_before, k.collection is null as is_new,
           q.due, q.waiting, q.due + q.waiting - q.touches as jobs, q.oldest_seconds, q.counted,
           (select coalesce(sum(f.settled + f.buried), 0) from catchword.freshness f
             where f.minute >= k.minute - interval '2 minutes' and f.collection = c.name) - k.gone as gone,
           (select coalesce(sum(f.settled + f.buried), 0) from catchword.freshness f
             where f.minute >= p_last - interval '2 minutes' and f.collection = c.name) as gone_by_now,
           (select s.last_value from catchword.job_id_seq s) as sequence
      from catchword.collection c
      left join catchword.history_mark k on k.collection = c.name
     cross join lateral catchword.queue_of(c.name) as q
     where c.member_of is null
  ),
  arrived as (
    select s.*, case when s.is_new then 0
                     when s.counted and s.jobs_before is not null
                     then greatest(s.jobs - s.jobs_before + s.gone, 0) end as counted_arrived
      from sampled s
  ),
  rest as (
    select greatest(max(a.sequence - a.sequence_before) - coalesce(sum(a.counted_arrived), 0), 0)
           / nullif(count(*) filter (where a.counted_arrived is null), 0) as each
      from arrived a
  ),
  minutes as (
    select m.minute, m.minute >= p_new as is_new
      from generate_series(p_last - interval '2 minutes', p_last, interval '1 minute') as m (minute)
     where exists (select from catchword.worker w
                    where w.seen_at >= m.minute - interval '10 seconds'
                      and w.started_at < m.minute + interval '1 minute')
        or exists (select from catchword.freshness f where f.minute = m.minute)
  ),
  buckets as (
    select b.minute, b.collection, array_agg(b.changes order by b.n) as buckets
      from (select f.minute, f.collection, b.n, sum(b.changes)::bigint as changes
              from catchword.freshness f
             cross join lateral unnest(f.buckets) with ordinality as b (changes, n)
             where f.minute between p_last - interval '2 minutes' and p_last
             group by f.minute, f.collection, b.n) as b
     group by b.minute, b.collection
  ),
  counts as (
    select f.minute, f.collection, sum(f.settled) as settled, sum(f.written) as written,
           sum(f.pushed_back) as pushed_back, sum(f.buried) as buried
      from catchword.freshness f
     where f.minute between p_last - interval '2 minutes' and p_last
     group by f.minute, f.collection
  ),
  written as (
    insert into catchword.history as h (minute, collection, scheduled, settled, written, pushed_back, buried, due,
                                        waiting, oldest_seconds, fresh_p50, fresh_p99)
    select m.minute, a.collection,
           -- spread over the minutes, if there are several
           least(coalesce(coalesce(a.counted_arrived, r.each)
                          / nullif((select count(*) from minutes n where n.is_new), 0), 0), 2147483647),
           coalesce(c.settled, 0), coalesce(c.written, 0), coalesce(c.pushed_back, 0), coalesce(c.buried, 0),
           least(greatest(a.due, l.jobs - l.waiting), 2147483647), least(greatest(a.waiting, l.waiting), 2147483647),
           case when a.oldest_seconds is not null then greatest(a.oldest_seconds, 0) end,
           catchword.percentile(b.buckets, 0.5), catchword.percentile(b.buckets, 0.99)
      from minutes m
     cross join arrived a
     cross join rest r
      left join counts c on c.minute = m.minute and c.collection = a.collection
      left join buckets b on b.minute = m.minute and b.collection = a.collection
      left join lateral catchword.about_jobs(a.collection) as l on not a.counted and m.is_new
     where m.is_new or exists (select from catchword.history old
                                where old.minute = m.minute and old.collection = a.collection)
    on conflict (minute, collection) do update
       set settled = excluded.settled, written = excluded.written, pushed_back = excluded.pushed_back,
           buried = excluded.buried, fresh_p50 = excluded.fresh_p50, fresh_p99 = excluded.fresh_p99
     where (h.settled, h.written, h.pushed_back, h.buried) is distinct from
           (excluded.settled, excluded.written, excluded.pushed_back, excluded.buried)
  )
  insert into catchword.history_mark as k (collection, minute, jobs, gone, sequence)
  select a.collection, p_last, case when a.counted then a.jobs end, a.gone_by_now, a.sequence from arrived a
  on conflict (collection) do update
     set minute = excluded.minute, jobs = excluded.jobs, gone = excluded.gone, sequence = excluded.sequence
$$;
comment on function catchword.write_history
  is 'writes the minutes from p_new to p_last, corrects those just before, and remembers how the queues are';

-- However many workers there are, one of them does it, and none waits for another. A clock that was ahead left rows of
-- minutes that are still to come; they go, and the minutes are written when they are over.
create function catchword.note_history() returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  this_minute constant timestamptz := date_trunc('minute', now(), 'UTC');
  last_minute constant timestamptz := this_minute - interval '1 minute';
  marked timestamptz;
begin
  if exists (select from catchword.history_mark k where k.minute = last_minute) then
    return;
  end if;
  perform from catchword.turn where what = 'history' for update skip locked;
  if not found or exists (select from catchword.history_mark k where k.minute = last_minute) then
    return;
  end if;
  delete from catchword.history h where h.minute >= this_minute;
  delete from catchword.freshness f
   where (f.minute, f.collection, f.session) in (
     select g.minute, g.collection, g.session from catchword.freshness g
      where g.minute > this_minute for update skip locked);
  select max(k.minute) into marked from catchword.history_mark k where k.minute < last_minute;
  perform catchword.write_history(
    last_minute, case when marked is null then last_minute
                      else greatest(marked + interval '1 minute', last_minute - interval '2 minutes') end);
end $$;
comment on function catchword.note_history
  is 'writes the history of the minute that is over, if nobody did yet; a part of every heartbeat';

revoke execute on all functions in schema catchword from public;
