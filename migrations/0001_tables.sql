-- The tables of catchword. Everything lives in the schema `catchword`, so that it never meets the application's own
-- names. The schema itself and the bookkeeping table `catchword._migrations` are made by the migrator before this file
-- runs.

comment on schema catchword is 'keeps Elasticsearch in step with the tables of this database';

-- One sequence for all collections. It steps by four. A row has the number that was drawn, n; the delete of a row has
-- n + 1. A row that was inserted below the number of its key's last delete counts as n + 2, the number above that
-- delete, and n + 3 while the view hides it: so these belong to the key's next life alone. Cache 1, because a session
-- that draws a block hands out numbers that were overtaken long ago by other sessions.
create sequence catchword.revision as bigint minvalue 4 start with 4 increment by 4 cache 1;
comment on sequence catchword.revision is 'the version of documents: even for a row, odd for a delete';

create table catchword.collection (
  name            text primary key
                  constraint collection_name_is_plain check (name ~ '^[a-z][a-z0-9_]{0,39}([$][0-9]{1,9})?$'),
  schemas         text,
  member_of       text references catchword.collection (name) on delete cascade,
  schema          text,
  source          regclass constraint collection_has_a_table check ((source is null) = (schemas is not null)),
  key_columns     name[] not null,
  key_types       text[] not null,
  revision_column name not null,
  view            text not null,
  has_ids         boolean not null default false,
  floor           bigint not null constraint collection_floor_is_drawn check (floor % 4 = 0),
  floor_view      text,
  filled_view     text,
  watch           text[] not null default '{}',
  touches         jsonb not null default '[]',
  unwatched       text[] not null default '{}',
  scopes          jsonb not null default '{}',
  period          name,
  delay_seconds   integer not null default 0
                  constraint collection_delay_is_sane check (delay_seconds between 0 and 3600),
  fair_by         name,
  definition      text not null,
  partitions      text[] not null default '{}',
  targets         text[] not null default '{}',
  search_alias    text,
  broken_at       timestamptz,
  repaired        bigint not null default 0,
  attached_at     timestamptz not null default now(),
  unique (member_of, schema),
  constraint collection_is_member_by_schema check ((member_of is null) = (schema is null))
);
comment on table  catchword.collection
  is 'a table, its view and its index; or the same table in many schemas, and then each of these is a member with a '
     'row of its own';
comment on column catchword.collection.name is 'what jobs, commands and metrics call it';
comment on column catchword.collection.schemas
  is 'of one over many schemas: their names, with * for any letters; jobs, records and targets are its own, and its '
     'settings are as they were written';
comment on column catchword.collection.member_of is 'of a member: the collection that has its jobs and its documents';
comment on column catchword.collection.schema is 'of a member: its schema, the first part of its keys';
comment on column catchword.collection.source
  is 'the table whose rows are the truth; null: each member has its own';
comment on column catchword.collection.key_columns is 'the columns that together name a row, and its document';
comment on column catchword.collection.key_types
  is 'their types, of a domain the type below it; a job holds the text of values of these types';
comment on column catchword.collection.revision_column is 'the column that the trigger fills from catchword.revision';
comment on column catchword.collection.view
  is 'the quoted name of the view (key, revision, body) whose rows are the documents';
comment on column catchword.collection.has_ids
  is 'has the view a column id, the ids of its documents? Otherwise the key is the id';
comment on column catchword.collection.floor is 'the least revision a document of this collection has';
comment on column catchword.collection.floor_view is 'digest of the view''s definition when the floor was drawn';
comment on column catchword.collection.filled_view
  is 'digest of the definition of the view that all documents were built with; null: of several, until reindex --all '
     '--rewrite';
comment on column catchword.collection.watch
  is 'if not empty: an update that changes none of these columns is passed over';
comment on column catchword.collection.touches is 'related tables whose changes touch rows of this one';
comment on column catchword.collection.unwatched
  is 'tables that the view reads and that are not watched on purpose: documents may be older than these';
comment on column catchword.collection.scopes is 'the names that reindex knows, and their columns';
comment on column catchword.collection.period is 'the column that reindex --between reads';
comment on column catchword.collection.delay_seconds
  is 'how long a job waits, where the transaction does not say: store_and_schedule does, so that its write comes first';
comment on column catchword.collection.fair_by
  is 'the column that names the tenant of a row; its live jobs are claimed in turn with those of others';
comment on column catchword.collection.definition is 'digest of what was attached; equal means nothing to do';
comment on column catchword.collection.partitions
  is 'the partitions that hold rows as they were last looked at, each with the oid of the trigger that Postgres made '
     'there; of a plain table: none';
comment on column catchword.collection.targets
  is 'the indices that must all agree, the readers'' first: one, until a rebuild makes it two';
comment on column catchword.collection.search_alias
  is 'the alias that the readers'' index was put under beside its own, to be searched together with other collections';
comment on column catchword.collection.broken_at
  is 'since when its triggers, columns or tables are not as they must be; when they are again, an audit finds what '
     'was missed';
comment on column catchword.collection.repaired
  is 'keys that audits scheduled for repair and whose results are deleted since';
comment on column catchword.collection.attached_at is 'when the triggers were last put in place';

-- A domain and not a check of the table: that is read again by every statement that inserts, which cost a quarter of
-- all that scheduling adds to a write.
create domain catchword.job_name as text constraint job_name_is_known check (value in ('index', 'touch'));
comment on domain catchword.job_name is 'index: look at one key; touch: a row of a related table changed';

create table catchword.job (
  id           bigint generated always as identity primary key,
  name         catchword.job_name not null default 'index',
  collection   text not null,
  key          text not null,
  enqueued_at  timestamptz not null default now(),
  scheduled_at timestamptz not null default now(),
  expires_at   timestamptz not null default now() + interval '30 days',
  priority     integer not null,
  tag          text not null,
  attempts     integer not null default 0,
  last_error   text,
  traceparent  text,
  cursor       text,
  unanswered   integer,
  lane         smallint,
  reindex      bigint
) with (
  -- The table lives by insert and delete: it is vacuumed after about two batches, at full speed, whatever its size.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 25000,
  autovacuum_vacuum_cost_delay = 0
);
comment on table  catchword.job is 'standing demands: look at this key until both sides agree';
comment on column catchword.job.id is 'breaks ties in the walk';
comment on column catchword.job.name is 'index: look at one key; touch: a row of a related table changed';
comment on column catchword.job.collection is 'the collection the key belongs to';
comment on column catchword.job.key
  is 'index: canonical text of the key; touch: row_column=value, =key, #entry=value (or a list of values) where no '
     'single column names the rows, !table=error where the values could not be told';
comment on column catchword.job.enqueued_at is 'sorts the walk within a priority; a bulk spaces it by a microsecond';
comment on column catchword.job.scheduled_at is 'due from here on; lag is measured from it';
comment on column catchword.job.expires_at is 'from here on: counted as expired, and buried if it was refused before';
comment on column catchword.job.priority
  is 'lower runs first: 0 quick and 1 live, 100 part, 1000 whole, 2000 called off';
comment on column catchword.job.tag is 'who asked; for people and metrics';
comment on column catchword.job.attempts is 'refusals of this document, never outages';
comment on column catchword.job.last_error is 'the last refusal, cut and redacted';
comment on column catchword.job.traceparent is 'the trace of the request that wrote the row, if it said so';
comment on column catchword.job.cursor
  is 'touch: expanded alone, behind this key: =key finds rows by the column, ~key walks the table';
comment on column catchword.job.unanswered
  is 'index: how many keys were in the smallest request without an answer that had this one in it';
comment on column catchword.job.lane
  is 'live jobs of a collection with fair_by: a number from 0 to 63 made from the tenant; a claim takes from all lanes '
     'in turn';
comment on column catchword.job.reindex
  is 'the reindex that scheduled it; negative: it stays when that is cancelled, because it came back from a dead '
     'letter, which may have been that of a write, or is the memory of a number that was drawn';

-- The only index a claim walks. A claim names one collection, so a paused one costs the others nothing.
create index job_walk on catchword.job (collection, priority, enqueued_at, id);
-- Where a collection has `fair_by`, a claim also takes from each lane in turn. Jobs without a lane pay nothing for it.
create index job_lane on catchword.job (collection, priority, lane, enqueued_at, id) where lane is not null;
-- Touches are few and are expanded before the walk. Index jobs pay nothing for a partial index that they are not in.
create index job_touch on catchword.job (collection, enqueued_at, id) where name = 'touch';
-- How many jobs of a reindex are open. Writes pay nothing for it.
create index job_reindex on catchword.job (reindex) where reindex is not null;

create table catchword.dead_job (
  id           bigint primary key,
  name         text not null,
  collection   text not null,
  key          text not null,
  enqueued_at  timestamptz not null,
  scheduled_at timestamptz not null,
  expires_at   timestamptz not null,
  priority     integer not null,
  tag          text not null,
  attempts     integer not null,
  last_error   text,
  traceparent  text,
  cursor       text,
  died_at      timestamptz not null default now(),
  reason       text not null constraint dead_job_reason_is_known
               check (reason in ('refused', 'unbuildable', 'too_large', 'bad_key', 'expired', 'ahead', 'unanswered',
                                 'by_hand')),
  reindex      bigint
);
comment on table  catchword.dead_job is 'jobs that were given up: the dead letters';
comment on column catchword.dead_job.id is 'the id of the job it was';
comment on column catchword.dead_job.name is 'as in job';
comment on column catchword.dead_job.collection is 'as in job';
comment on column catchword.dead_job.key is 'as in job';
comment on column catchword.dead_job.enqueued_at is 'as in job';
comment on column catchword.dead_job.scheduled_at is 'as in job';
comment on column catchword.dead_job.expires_at is 'as in job';
comment on column catchword.dead_job.priority is 'as in job';
comment on column catchword.dead_job.tag is 'as in job';
comment on column catchword.dead_job.attempts is 'as in job';
comment on column catchword.dead_job.last_error is 'the error that it died of';
comment on column catchword.dead_job.traceparent is 'as in job';
comment on column catchword.dead_job.cursor is 'as in job';
comment on column catchword.dead_job.died_at is 'when it was buried';
comment on column catchword.dead_job.reason
  is 'why: refused, unbuildable, too_large, bad_key, expired, ahead, unanswered, by_hand';
comment on column catchword.dead_job.reindex is 'the reindex that scheduled it';
-- The dead letters of a key are deleted when it settles later. A hash, because a key that is too long for
-- Elasticsearch is buried too, and a btree entry of collection and key would be too long for a key that just fitted
-- into its own table's index.
create index dead_job_key on catchword.dead_job using hash (key);
-- The dead letters of a collection are counted at every scrape.
create index dead_job_collection on catchword.dead_job (collection);
create index dead_job_reindex on catchword.dead_job (reindex) where reindex is not null;

-- What is known of a key beside its row. Rows are only added in an application's transaction, never changed: so
-- whatever its isolation level, no write of it can fail here, or wait; for the same reason there is no check on it.
-- The highest number counts; lower ones are deleted in passing, and by the sweep.
create table catchword.record (
  collection  text not null,
  key         text not null,
  revision    bigint not null,
  recorded_at timestamptz not null default now(),
  primary key (collection, key, revision)
);
comment on table  catchword.record is 'numbers that were drawn for keys and not for rows: of deletes and of touches';
comment on column catchword.record.collection is 'the collection the key belongs to';
comment on column catchword.record.key is 'canonical text of the key';
comment on column catchword.record.revision
  is 'odd: the version of the tombstone, the row was deleted; even: the least version of the row, it was touched';
comment on column catchword.record.recorded_at is 'when; the sweep goes by it';
-- The sweep goes by age.
create index record_age on catchword.record (collection, recorded_at, key);

-- Where a view has ids of its own. A row is added before the first document of its key is sent, and goes when the
-- tombstone of the key is swept: so whatever is in an index can be found by its key, also when the row is gone.
create table catchword.document_id (
  collection text not null,
  key        text not null,
  id         text not null,
  primary key (collection, key),
  unique (collection, id)
);
comment on table  catchword.document_id is 'the ids of documents, where a view has a column id';
comment on column catchword.document_id.collection is 'the collection the key belongs to';
comment on column catchword.document_id.key is 'canonical text of the key';
comment on column catchword.document_id.id is 'the id of its document in every index; it never changes';

create table catchword.pause (
  collection text primary key,
  since      timestamptz not null default now(),
  by         text not null default session_user,
  reason     text not null
);
comment on table  catchword.pause is 'collections that are not worked on for now; writes still schedule jobs';
comment on column catchword.pause.collection is 'what is paused';
comment on column catchword.pause.since is 'since when';
comment on column catchword.pause.by is 'by whom';
comment on column catchword.pause.reason is 'why';

-- Whoever must be alone locks a row here. A row and not an advisory lock: that can be taken by every role that may
-- connect, and a lock on a row takes a right to change it.
create table catchword.turn (
  what text primary key
);
comment on table  catchword.turn is 'rows to be locked by whoever must be alone';
comment on column catchword.turn.what is 'attach: attaching a table; revision: raising the sequence';
insert into catchword.turn values ('attach'), ('revision');

create table catchword.journal (
  id         bigint generated always as identity primary key,
  at         timestamptz not null default now(),
  who        text not null default session_user,
  what       text not null,
  collection text,
  detail     text,
  count      bigint
);
comment on table  catchword.journal is 'what operators did; append only';
comment on column catchword.journal.id is 'in order';
comment on column catchword.journal.at is 'when';
comment on column catchword.journal.who is 'who';
comment on column catchword.journal.what is 'attach, detach, reindex, …';
comment on column catchword.journal.collection is 'where';
comment on column catchword.journal.detail is 'with what words';
comment on column catchword.journal.count is 'how many';

-- Small things that all files use.

-- Lower runs first. A live job is of a write that was just committed; a part is some rows (a large statement, a user,
-- a period, what an audit found), a whole is everything; what was called off stands behind all of them.
--
-- A live job that is due at once is quick, and one that waits is not: for its direct write, or because it was put off.
-- They stand apart, so that whoever asks many times a second whether one is due never reads those that wait.
create function catchword.priority_quick() returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$ select 0 $$;
comment on function catchword.priority_quick is 'the priority of a live job that is due at once';

-- The same hash is written out in the triggers: a call would cost the writer more than the hash does.
create function catchword.lane(p_tenant text) returns smallint
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select (hashtextextended(coalesce(p_tenant, ''), 0) & 63)::smallint
$$;
comment on function catchword.lane is 'the lane of a tenant: one of 64, always the same';

create function catchword.priority_live() returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$ select 1 $$;
comment on function catchword.priority_live
  is 'the priority of a live job that waits or waited; live jobs have this or a lower one';

create function catchword.priority_part() returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$ select 100 $$;
comment on function catchword.priority_part is 'the priority of a bulk that is a part of a collection';

create function catchword.priority_whole() returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$ select 1000 $$;
comment on function catchword.priority_whole is 'the priority of a bulk that is a whole collection';

create function catchword.priority_called_off() returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$ select 2000 $$;
comment on function catchword.priority_called_off is 'the priority of a bulk that was a mistake';

-- A refusal has its own SQLSTATE, so that a caller can tell it from an accident. The hint says what to do.
create function catchword.refuse(p_message text, p_hint text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = 'CW001', message = p_message, hint = p_hint;
end $$;
comment on function catchword.refuse is 'raises an error with a SQLSTATE of our own and a hint';

-- Always in quotes: words of PL/pgSQL are no words of SQL, and %I leaves them bare.
create function catchword.quoted(p_name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select '"' || replace(p_name, '"', '""') || '"'
$$;
comment on function catchword.quoted is 'a name in double quotes';

create function catchword.full_name(p_relation regclass) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select format('%I.%I', n.nspname, c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = p_relation
$$;
comment on function catchword.full_name is 'the quoted name of a table or a view, with its schema; null: it is gone';

create function catchword.has_column(p_relation regclass, p_name text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select exists (select from pg_attribute
                  where attrelid = p_relation and attname = p_name and attnum > 0 and not attisdropped)
$$;
comment on function catchword.has_column is 'does a table or a view have this column?';

-- A plain table is its own only leaf: the leaves are what holds rows.
create function catchword.tree(p_source regclass) returns table (relation oid, leaf boolean)
language sql stable rows 10 set search_path = pg_catalog, pg_temp as $$
  with recursive tree (relation, kind) as (
    select c.oid, c.relkind from pg_class c where c.oid = p_source
    union all
    select c.oid, c.relkind
      from tree t
      join pg_inherits i on i.inhparent = t.relation and not i.inhdetachpending
      join pg_class c on c.oid = i.inhrelid
     where t.kind = 'p'
  )
  select relation, kind <> 'p' from tree
$$;
comment on function catchword.tree is 'a table and, if it is partitioned, all its partitions';

create function catchword.is_partitioned(p_source regclass) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce((select c.relkind = 'p' from pg_class c where c.oid = p_source), false)
$$;
comment on function catchword.is_partitioned is 'is it a table whose rows are in partitions?';

create function catchword.about_rows(p_source regclass) returns float8
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when bool_and(c.reltuples < 0) then -1 else sum(greatest(c.reltuples, 0)) end
    from catchword.tree(p_source) t join pg_class c on c.oid = t.relation where t.leaf
$$;
comment on function catchword.about_rows is 'about how many rows a table has; below 0: nobody knows';

create function catchword.rows_in(p_source regclass) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when catchword.is_partitioned(p_source) then '' else 'only ' end || catchword.full_name(p_source)
$$;
comment on function catchword.rows_in is 'SQL for where the rows of a table are read';

-- Every function of ours has a path of its own, so that nothing which somebody planted in a schema of the caller's
-- path runs in it. The names of your tables and views are looked up by the caller's path, and this is the one place
-- that does it. A session of catchword keeps that path in `catchword.path` (session.sql); the default is read
-- before the function's own path is set.
create function catchword.named(
  p_name text,
  p_path text default coalesce(nullif(current_setting('catchword.path', true), ''), current_setting('search_path'))
) returns regclass
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  -- until the end of this function
  perform set_config('search_path', p_path, true);
  return pg_catalog.to_regclass(p_name);
end $$;
comment on function catchword.named is 'the table or view that a name means under a search path; null: none';

-- Written out, because that of an extension's type is in a schema that our path does not have: a citext would be
-- compared as a text. `p_strategy` is that of a btree: 3 is equal, 5 is greater.
create function catchword.operator(p_type oid, p_strategy smallint) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select coalesce(
    (select format('operator(%I.%s)', n.nspname, o.oprname)
       from pg_opclass c
       join pg_am m on m.oid = c.opcmethod and m.amname = 'btree'
       join pg_amop a on a.amopfamily = c.opcfamily and a.amopstrategy = p_strategy
                     and a.amoplefttype = c.opcintype and a.amoprighttype = c.opcintype
       join pg_operator o on o.oid = a.amopopr
       join pg_namespace n on n.oid = o.oprnamespace
      where c.opcdefault
        and c.opcintype = coalesce((select nullif(t.typbasetype, 0) from pg_type t where t.oid = p_type), p_type)),
    case p_strategy when 3 then 'operator(pg_catalog.=)' else 'operator(pg_catalog.>)' end)
$$;
comment on function catchword.operator is 'the operator by which two values of a type are compared, with its schema';

create function catchword.equality(p_type oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select catchword.operator(p_type, 3::smallint)
$$;
comment on function catchword.equality is 'the operator by which two values of a type are equal, with its schema';

-- Keys. A row is named by one column or by several. Jobs, records and documents have the text of it: of one column the
-- value's own text, of several their texts with a / in between. A / in a value is written %2F, a % is written %25, so
-- that the parts can be told apart. One key has one text: numbers without zeros at their end, citext in lower case.

create function catchword.key_type(p_type oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  with recursive below (type) as (
    select p_type
    union all
    select t.typbasetype from below b join pg_type t on t.oid = b.type and t.typtype = 'd'
  )
  select case when t.oid = any('{uuid,bigint,integer,smallint,text,numeric,date}'::regtype[]) then t.oid::regtype::text
              when t.oid = 'character varying'::regtype then 'text'
              when t.oid = 'character'::regtype then 'bpchar'
              when t.typname = 'citext' then t.oid::regtype::text end
    from below b join pg_type t on t.oid = b.type
   where t.typtype <> 'd'
$$;
comment on function catchword.key_type is 'the type that keys of this type are compared as; null: it cannot be a key';

create function catchword.key_types(p_source regclass, p_columns name[]) returns text[]
language sql stable set search_path = pg_catalog, pg_temp as $$
  select array(select catchword.key_type(a.atttypid)
                 from unnest(p_columns) with ordinality as c (name, n)
                 left join pg_attribute a on a.attrelid = p_source and a.attname = c.name
                                         and a.attnum > 0 and not a.attisdropped
                order by c.n)
$$;
comment on function catchword.key_types is 'the types that these columns are compared as, in their order';

create function catchword.part_text(p_type text, p_value text, p_several boolean) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_several and (p_type in ('text', 'bpchar') or p_type like '%citext')
              then format($q$pg_catalog.replace(pg_catalog.replace(%s, '%%', '%%25'), '/', '%%2F')$q$, plain.text)
              else plain.text end
    from (select case when p_type = 'numeric' then format('pg_catalog.trim_scale(%s)::text', p_value)
                      when p_type like '%citext' then format('pg_catalog.lower(%s::text)', p_value)
                      else format('%s::text', p_value) end) as plain (text)
$$;
comment on function catchword.part_text is 'SQL for the text that a column''s value is in a key';

create function catchword.part_of(p_key text, p_part integer, p_parts integer) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case p_parts when 1 then format('(%s)::text', p_key)
                      else format($q$pg_catalog.split_part((%s)::text, '/', %s)$q$, p_key, p_part) end
$$;
comment on function catchword.part_of is 'SQL for one part of a key, as it is written in the key';

create function catchword.part_value(p_type text, p_key text, p_part integer, p_parts integer) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format('%s::%s',
                case when p_parts > 1 and (p_type in ('text', 'bpchar') or p_type like '%citext')
                     then format($q$pg_catalog.replace(pg_catalog.replace(%s, '%%2F', '/'), '%%25', '%%')$q$, part)
                     else part end,
                p_type)
    from catchword.part_of(p_key, p_part, p_parts) as part
$$;
comment on function catchword.part_value is 'SQL for the value that one part of a key is the text of';

create function catchword.is_date(p_text text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  perform p_text::date;
  return true;
exception when data_exception then
  return false;
end $$;
comment on function catchword.is_date is 'can this text be read as a date?';

-- The id of a document that cannot be a key is recorded as gone too, when an audit found it.
create function catchword.part_condition(p_type text, p_part text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format(case p_type
    when 'uuid' then $q$%s ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'$q$
    when 'smallint' then $q$case when %1$s ~ '^-?[0-9]{1,5}$'
                                 then %1$s::numeric between -32768 and 32767 else false end$q$
    when 'integer' then $q$case when %1$s ~ '^-?[0-9]{1,10}$'
                                then %1$s::numeric between -2147483648 and 2147483647 else false end$q$
    when 'bigint' then $q$case when %1$s ~ '^-?[0-9]{1,19}$'
                 then %1$s::numeric between -9223372036854775808 and 9223372036854775807 else false end$q$
    when 'numeric' then $q$%s ~ '^(-?[0-9]{1,250}([.][0-9]{1,250})?|NaN|-?Infinity)$'$q$
    when 'date' then $q$catchword.is_date(%s)$q$
    else '%s is not null' end, p_part)
$$;
comment on function catchword.part_condition
  is 'the condition in SQL under which a text is a part of a key of this type';

-- What the names in a template stand for that have to do with keys; see `fill` in 0002_triggers.sql. `t` is a row of
-- the table, `v` one of the view, `n` and `o` a new and an old row in a trigger, `k` one with the columns k1, k2, ….
--   {t_key} the text of its key; {t_columns} its columns, also to sort by; {t_is X} its key is X, a text;
--   {t_at X} its key is among X, an array of text; {t_after X} it comes behind the key X; {t_is_v} t and v are the same
--   {given X} the array X as text; {fits X} can X be a key?; {values_of X} the columns k1, k2, … of the key X;
--   {t_as_k} the columns of t, called so
-- `p_array` is the type under which arrays of keys are bound. A place for X is chr(1) until the end.
--
-- With a `p_schema` the key begins with it, and a table has no column for it: a row's is this one. Then {t_columns} and
-- {t_after X} leave it out: whoever walks goes from schema to schema.
create function catchword.key_names(
  p_columns name[], p_types text[], p_array text default 'text[]', p_schema text default null
) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
  with part as (
    select n, c.type, catchword.quoted(c.name) as name, cardinality(k.columns) as parts,
           n = 1 and p_schema is not null as is_schema,
           catchword.equality(to_regtype(c.type)) as equals,
           catchword.operator(to_regtype(c.type), 5::smallint) as greater,
           catchword.part_value(c.type, chr(1), n::integer, cardinality(k.columns)) as value,
           catchword.part_condition(c.type, catchword.part_of(chr(1), n::integer, cardinality(k.columns))) as fits
      from (select case when p_schema is null then p_columns else 'schema'::name || p_columns end,
                   case when p_schema is null then p_types else 'text'::text || p_types end) as k (columns, types),
           unnest(k.columns, k.types) with ordinality as c (name, type, n)
  ),
  side as (
    select part.*, alias, said, catchword.part_text(type, said, parts > 1) as text, is_schema and alias <> 'k' as fixed
      from part, (values ('t'), ('v'), ('n'), ('o'), ('k')) as a (alias),
           lateral (select case when alias = 'k' then 'k.k' || n
                                when is_schema then quote_literal(p_schema) || '::text'
                                when alias = 'v' and cardinality(p_columns) = 1 then 'v.key'
                                else alias || '.' || name end) as c (said)
  ),
  whole as (
    select alias, parts, min(type) as type,
           bool_and(greater = 'operator(pg_catalog.>)') and count(*) filter (where not fixed) > 1 as is_plain,
           string_agg(text, $q$ || '/' || $q$ order by n) as key,
           string_agg(said, ', ' order by n) filter (where not fixed) as columns,
           string_agg(value, ', ' order by n) filter (where not fixed) as values,
           string_agg(format('%s %s %s', said, equals, value), ' and ' order by n) as same,
           min(format('%s %s', said, equals)) as first,
           -- one part is greater, and all before it are equal
           string_agg(concat_ws(' and ', (select string_agg(format('%s %s %s', b.said, b.equals, b.value), ' and ')
                                            from side b where b.alias = side.alias and b.n < side.n and not b.fixed),
                                format('%s %s %s', said, greater, value)), ' or ' order by n)
             filter (where not fixed) as beyond
      from side group by alias, parts
  ),
  names (name, says) as (
    select alias || suffix, says
      from whole,
           lateral (values
             ('_key', key),
             ('_columns', columns),
             ('_is', same),
             ('_at', case when parts > 1
                then format('exists (select from pg_catalog.unnest(%s::text[]) as given (key) where %s)',
                            chr(1), replace(same, chr(1), 'given.key'))
                else format('%s any(%s::%s%s)', first, chr(1), p_array,
                            case p_array when 'text[]' then '::' || type || '[]' else '' end) end),
             ('_after', case when is_plain then format('(%s) > (%s)', columns, values)
                             else format('(%s)', beyond) end)) as named (suffix, says)
    union all
    select 't_is_v', string_agg(format('%s %s %s', t.said, t.equals, v.said), ' and ' order by n)
      from side t join side v using (n) where t.alias = 't' and v.alias = 'v' and not t.fixed
    union all
    select 't_as_k', string_agg(format('%s as k%s', said, n), ', ' order by n) from side where alias = 't'
    union all
    select 'values_of', string_agg(format('%s as k%s', value, n), ', ' order by n) from part
    union all
    select 'given', format('%s::%s%s', chr(1), p_array, case p_array when 'text[]' then '' else '::text[]' end)
    union all
    select 'fits', case when parts = 1 then max(fits)
             else format($q$case when pg_catalog.cardinality(pg_catalog.string_to_array(%s, '/')) = %s
                                 then %s else false end$q$, chr(1), parts, string_agg(fits, ' and ' order by n)) end
      from part group by parts
  )
  select jsonb_object_agg(name, case when position(chr(1) in says) > 0 then to_jsonb(string_to_array(says, chr(1)))
                                     else to_jsonb(says) end)
    from names
$$;
comment on function catchword.key_names is 'what the names in the templates stand for that have to do with keys';

-- Whoever reads or checks tables does so member by member, in the order of their schemas. One whose schema was dropped
-- or has another name now is none any more: the next tick forgets it (`note_partitions`).
create function catchword.members(p_collection text) returns setof catchword.collection
language sql stable rows 10 set search_path = pg_catalog, pg_temp as $$
  select c.* from catchword.collection c where c.name = p_collection and c.schemas is null
  union all
  (select m.* from catchword.collection m
    where m.member_of = p_collection
      and exists (select from pg_class r join pg_namespace n on n.oid = r.relnamespace
                   where r.oid = m.source and n.nspname = m.schema)
    order by m.schema collate "C")
$$;
comment on function catchword.members
  is 'the members of a collection over many schemas, by schema; of any other: the collection itself';

create function catchword.whole_name(p_member catchword.collection) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select coalesce(p_member.member_of, p_member.name)
$$;
comment on function catchword.whole_name is 'under which name a member, or a collection, has its jobs and records';

-- What may stand before a table's name: tenant_* means every schema whose name begins so.
create function catchword.schemas_of(p_name text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select (regexp_match(p_name, '^([a-z0-9_]*[*][a-z0-9_*]*)[.]'))[1]
$$;
comment on function catchword.schemas_of is 'the part of a name that means many schemas; null: it names one table';

create function catchword.in_schema(p_text text, p_schemas text, p_schema text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select case when p_schema is null then p_text
              else replace(p_text, p_schemas || '.', quote_ident(p_schema) || '.') end
$$;
comment on function catchword.in_schema is 'a name or a query with one schema in place of many';

create function catchword.matching(p_table text) returns setof text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select n.nspname::text
    from pg_namespace n
   where n.nspname like replace(replace(catchword.schemas_of(p_table), '_', '\_'), '*', '%')
     and n.nspname not in ('catchword', 'information_schema') and n.nspname not like 'pg\_%'
     and exists (select from pg_class c
                  where c.relnamespace = n.oid and c.relkind in ('r', 'p')
                    and c.relname = (parse_ident(substr(p_table, length(catchword.schemas_of(p_table)) + 2)))[1])
   order by n.nspname collate "C"
$$;
comment on function catchword.matching is 'the schemas that have this table, whose name begins with many schemas';

-- The schema that a key, or a cursor, begins with.
create function catchword.schema_in(p_key text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select replace(replace(split_part(p_key, '/', 1), '%2F', '/'), '%25', '%')
$$;
comment on function catchword.schema_in is 'the first part of a key, which is a schema where a collection has many';

revoke execute on all functions in schema catchword from public;
