-- The roles of an installation, and each right they need with its reason. For psql:
--
--   psql -v migrator=app_owner -v worker=catchword_worker -v application=app -f migrations/grants.sql
--   psql … -v operator=catchword_operator -v reader=catchword_reader -v service=app_service -f migrations/grants.sql
--
-- Run it as a superuser, or as a role that may create roles and owns the database: once before the first `catchword
-- migrate`, so that the migrator may make the schema, and again after each `catchword migrate`, so that the others may
-- use what is new. Repeating it changes nothing. Roles that are missing are made without a password: `alter role …
-- password …` is yours. Operator, reader and service may be left out.
--
--   migrator     runs `catchword migrate`, `detach`. Owns the schema catchword and the application's tables and views,
--                because only an owner can add a column and, with its functions, write rows whoever the caller is.
--   worker       runs `catchword worker`, `sync`, `reindex`, `rebuild`, `audit`, `status`, `check`, `doctor`,
--                `explain`, `journal`, `dead list`, `dead show`. Reads the attached tables and views, never writes
--                them: what it changes there it changes through functions of the migrator's.
--   operator     a person. Does what a worker does, and `pause`, `resume`, `dead replay`, `dead discard`, `dead bury`,
--                `reindex cancel`, `pause`, `resume` and `rate`, through functions that write into the journal who it
--                was. Makes and revokes API keys. What `catchword serve` runs as, if it is to act.
--   reader       looks and changes nothing: `status`, `check`, `explain`, `journal`, `dead list`, `dead show`, `reindex
--                list`, and `catchword serve --read-only`.
--   application  writes its own tables. It needs no right here: the triggers schedule the jobs with the migrator's
--                rights. It may call `catchword.touch_later` in triggers of its own, and ask `catchword.standing`.
--   service      an application that calls the library (`store_and_schedule`, `index_now`). It reads what a document is
--                made of, and can neither see nor change jobs and dead letters, and only read the records of deletes.
--                The rights to write its own tables are yours to give.
--
-- The brackets name the commands that fail without a right; `catchword doctor` reads them.
\set ON_ERROR_STOP on
\set QUIET on
\pset tuples_only on
\if :{?migrator}
\else
  \echo 'say who: -v migrator=… -v worker=… -v application=…'
  \quit
\endif
\if :{?operator}
\else
  \set operator ''
\endif
\if :{?reader}
\else
  \set reader ''
\endif
\if :{?service}
\else
  \set service ''
\endif

begin;

-- nothing that somebody planted in a schema of the path may run with the rights of whoever runs this
set local search_path = pg_catalog, pg_temp;
-- what was granted before is no news
set local client_min_messages = warning;

select format('create role %I login', name)
  from unnest(array[:'migrator', :'worker', :'application', :'operator', :'reader', :'service']) as wanted (name)
 where name <> '' and not exists (select from pg_catalog.pg_roles where rolname = wanted.name)
\gexec
select :'operator' <> '' as has_operator, :'reader' <> '' as has_reader, :'service' <> '' as has_service \gset

-- migrator: to make the schema catchword, the first time
select format('grant connect, create on database %I to %I', current_database(), :'migrator') \gexec
-- the others: to come in, also where public may not
select format('grant connect on database %I to %I', current_database(), name)
  from unnest(array[:'worker', :'application', :'operator', :'reader', :'service']) as wanted (name)
 where name <> ''
\gexec

-- The rest needs the schema.
select to_regclass('catchword._migrations') is not null as there \gset
\if :there

-- [every command] To find what is in the schema.
grant usage on schema catchword to :"worker";
-- [every command] To see which version the schema is, which collections there are, who we are, what is paused, how far
-- a reindex came, what was done.
grant select on
  catchword._migrations, catchword.collection, catchword.installation, catchword.pause, catchword.reindex,
  catchword.journal
  to :"worker";
-- [worker, sync, rebuild] To claim (a row lock needs update), to push back, to settle and to bury. Never to insert:
-- jobs come from triggers and functions.
grant select, update, delete on catchword.job to :"worker";
-- [worker, sync, status, check, rebuild, audit] To know which jobs are live, part and whole, and when a refused one is
-- due again.
grant execute on function
  catchword.priority_quick(), catchword.priority_live(), catchword.priority_part(), catchword.priority_whole(),
  catchword.retry_at(integer)
  to :"worker";
-- [worker, status] To count the jobs that were ever scheduled.
grant select on sequence catchword.job_id_seq to :"worker";
-- [worker, doctor] To give sentinels a number, and to see how far the numbers came.
grant usage, select on sequence catchword.revision to :"worker";
-- To see whose transaction holds vacuum back. A superuser can grant it, and who has it to grant; without it, sessions
-- of other roles are not seen.
select format('grant pg_read_all_stats to %I', :'worker')
 where pg_has_role(current_user, 'pg_read_all_stats', 'usage with admin option')
\gexec
-- [worker, sync, dead list, dead show] To bury, to show, and to drop the dead letters of a key that settled.
grant select, insert, delete on catchword.dead_job to :"worker";
-- [worker, sync, audit, explain] To know the number of a delete or a touch.
grant select on catchword.record to :"worker";
-- [worker, sync, audit, rebuild, explain] To know the ids of documents, and to write a new one down before it is used.
grant select on catchword.document_id to :"worker";
grant execute on function catchword.name_documents(text, text[], text[]) to :"worker";
-- [worker, audit, rebuild] To keep what an audit found and how far it came, and to schedule what differs among bulks.
grant select, insert, update, delete on catchword.audit to :"worker";
grant execute on function
  catchword.bulk_base(text, integer), catchword.schedule_audit(text, text[], timestamptz, bigint),
  catchword.ask_audit(text, boolean, text), catchword.clear_audits()
  to :"worker";
-- [worker] To remember what each index acknowledged.
grant select, insert, update, delete on catchword.sentinel to :"worker";
-- [worker] To sweep tombstones that are old enough, and then their records.
grant execute on function
  catchword.old_records(text, double precision, timestamptz, text, integer),
  catchword.forget_records(text, text[], bigint[]), catchword.keep_records(text, text[], bigint[])
  to :"worker";
-- [rebuild, worker, status] To rebuild an index, to finish and to undo that, and to see and remember whether a view
-- changed. The list of indices is changed by these alone.
grant select on catchword.rebuild to :"worker";
grant execute on function
  catchword.rebuild_begin(text, text, jsonb, interval, text), catchword.rebuild_step(bigint, text, text, text),
  catchword.rebuild_hold(bigint, text, text), catchword.rebuild_release(bigint), catchword.rebuild_forget(bigint),
  catchword.view_digest(text), catchword.note_view_changed(text), catchword.note_broken(text, boolean),
  catchword.note_partitions(text)
  to :"worker";
-- [worker, status, doctor] To see what a view is made of, whether every change of it is noticed, and what is doubtful
-- about it.
grant execute on function
  catchword.view_facts(text), catchword.same_view(text, text), catchword.unsteady(text), catchword.opaque(text),
  catchword.needless(text)
  to :"worker";
-- [worker, sync, check] To count how fresh search is, and to forget that after two days.
grant select, insert, update, delete on catchword.freshness to :"worker";
-- [worker, history, status --watch] To write the history of a minute, to show it, and to forget it after eight days.
grant execute on function catchword.note_history() to :"worker";
grant select, delete on catchword.history to :"worker";
-- [worker, status, check] To send a heartbeat, and to forget workers that vanished.
grant select, insert, update, delete on catchword.worker to :"worker";
-- [worker, sync, status, check] To say since when due jobs of a collection have not moved.
grant select, insert, update, delete on catchword.standstill to :"worker";

-- [every command] To find tables and views by their names, to write their names into statements, and to see whether
-- the triggers are in place.
grant execute on function
  catchword.named(text, text), catchword.full_name(regclass), catchword.has_column(regclass, text),
  catchword.has_ids(text, name[]), catchword.quoted(text), catchword.operator(oid, smallint),
  catchword.equality(oid), catchword.key_type(oid),
  catchword.key_types(regclass, name[]), catchword.part_text(text, text, boolean),
  catchword.part_of(text, integer, integer), catchword.part_value(text, text, integer, integer),
  catchword.part_condition(text, text), catchword.key_names(name[], text[], text, text),
  catchword.names_of(catchword.collection, text), catchword.members(text),
  catchword.whole_name(catchword.collection), catchword.schemas_of(text), catchword.matching(text),
  catchword.attached_members(text, oid, oid), catchword.touch_owner(text, jsonb), catchword.each_once(jsonb),
  catchword.hidden_rows(text, oid), catchword.reader(),
  catchword.foreign_key(regclass, jsonb), catchword.names_in(jsonb), catchword.element_type(oid),
  catchword.primary_key(regclass), catchword.later_triggers(regclass, text),
  catchword.trigger_name(text, text),
  catchword.tree(regclass), catchword.is_partitioned(regclass), catchword.rows_in(regclass),
  catchword.about_rows(regclass), catchword.partitions_of(text, regclass),
  catchword.sees_all(oid, oid), catchword.secured_reads(text, oid),
  catchword.security_problems(regclass, jsonb, text, oid, oid),
  catchword.trigger_problems(text), catchword.column_problems(text), catchword.table_problems(text),
  catchword.right_problems(text), catchword.broken_triggers(text), catchword.problems(text, text, name[], text, text)
  to :"worker";
-- [worker, sync] To read what is attached, and to begin a tick.
grant execute on function
  catchword.attached(text[], text[], text[], jsonb[], text), catchword.unmigrated(text, text, jsonb, text),
  catchword.unwatched_tables(catchword.collection, oid[]), catchword.unwatched_columns(catchword.collection, text[]),
  catchword.renew_worker(uuid, text, text, text[], jsonb, text, boolean, text, text, text[], jsonb),
  catchword.note_moved(text[]), catchword.bring_back(text[]), catchword.hasten(text[]),
  catchword.tick(uuid, text, text, text[], jsonb, text, boolean, text, text, text[], jsonb)
  to :"worker";
-- [worker, sync, audit] To give rows a new number: after a change of a related table, and where Elasticsearch is ahead.
grant execute on function
  catchword.draw(text, text[]), catchword.touch(text, text[]), catchword.expand_touches(text, integer)
  to :"worker";
-- [audit] To see which documents a change of a related table will still reach.
grant execute on function catchword.touched_soon(text, text[]) to :"worker";
-- [doctor] To see how the rows of a related table are found.
grant execute on function catchword.touch_plans(text) to :"worker";
-- [worker, sync, audit] To lift the sequence above a version seen in Elasticsearch, and to notice another server.
grant execute on function catchword.raise_revision(bigint), catchword.note_server() to :"worker";
-- [every command] To notice that this database is a copy of another one, or that it went back behind what an index has.
grant execute on function catchword.copy_of(), catchword.note_doubt(text, text, bigint, text) to :"worker";
-- [worker] To change the canary.
grant execute on function catchword.stir_canary() to :"worker";
-- [wait_until] To know which revision a key has, whether its job was given up, and whether one is open.
grant execute on function catchword.known(text, text[]), catchword.standing(text, text[], timestamptz) to :"worker";
-- [worker, sync, audit] To record a delete that nobody recorded.
grant execute on function catchword.record_gone(text, text[]) to :"worker";
-- [reindex, rebuild] To reindex, and to schedule by hand.
grant execute on function
  catchword.schedule(text, text[], text, integer, interval),
  catchword.reindex_start(text, text, text, timestamptz, timestamptz, text[], boolean, boolean, text, integer, bigint,
                          text),
  catchword.reindex_count(bigint),
  catchword.reindex_chunk(bigint, integer),
  catchword.reindex_goes_on(bigint, integer),
  catchword.reindex(text, text, text, timestamptz, timestamptz, text[], boolean, boolean, text)
  to :"worker";
grant execute on procedure catchword.run_reindex(bigint, integer) to :"worker";
-- [worker, sync, rebuild, reindex] To schedule the next pieces of reindexes, and to see how far they came. Nobody gets
-- `reindex_where`: a condition is SQL, and is run with the migrator's rights.
grant execute on function
  catchword.feed_reindexes(text[], bigint), catchword.reindexes(text, bigint, bigint)
  to :"worker";

\if :has_operator
-- An operator does what a worker does: an audit, a rebuild and a `sync` work the queue themselves.
grant :"worker" to :"operator";
-- [pause, resume] To stop the work on a collection, and to go on.
grant execute on function catchword.pause(text, text, text), catchword.resume(text, text) to :"operator";
-- [dead replay, dead discard] To schedule dead letters again, and to delete them.
grant execute on function
  catchword.replay(bigint[], text, text, text, timestamptz, text, text, text),
  catchword.discard(bigint[], text, text, text, timestamptz, text, text, text)
  to :"operator";
-- [call_off] To put a bulk that was a mistake behind everything else, by psql.
grant execute on function catchword.call_off(text, text, text) to :"operator";
-- To end a session that holds jobs or a lock. A superuser can grant it, and who has it to grant.
select format('grant pg_signal_backend to %I', :'operator')
 where pg_has_role(current_user, 'pg_signal_backend', 'usage with admin option')
\gexec
-- [reindex cancel, reindex pause, reindex resume, reindex rate] To end a reindex, to let it rest, to slow it down.
grant execute on function
  catchword.cancel_reindex(bigint, text), catchword.pause_reindex(bigint, text),
  catchword.resume_reindex(bigint, text), catchword.set_reindex_rate(bigint, integer, text)
  to :"operator";
-- [dead bury] To give up the jobs of one key.
grant execute on function catchword.bury(text, text, text, text) to :"operator";
-- [serve] To ask for an audit, to stop one, and to have a key looked at now.
grant execute on function
  catchword.start_audit(text, boolean, boolean, text), catchword.stop_audit(bigint, text),
  catchword.look_again(text, text[], text)
  to :"operator";
-- [key create, key list, key revoke] To make API keys, and to refuse them.
grant execute on function
  catchword.create_key(text, text, bytea, text, text[], integer, interval, text), catchword.revoke_key(text, text),
  catchword.keys()
  to :"operator";
-- [serve] To know whose key it is that asks.
grant execute on function
  catchword.find_key(text), catchword.has_keys(), catchword.note_key_used(text)
  to :"operator";
\endif

\if :has_reader
-- [every command] To find what is in the schema.
grant usage on schema catchword to :"reader";
-- [every command] To see how things stand. A reader changes no row of these, and locks none.
grant select on
  catchword._migrations, catchword.collection, catchword.installation, catchword.pause, catchword.reindex,
  catchword.journal, catchword.job, catchword.dead_job, catchword.record, catchword.document_id, catchword.audit,
  catchword.sentinel, catchword.rebuild, catchword.freshness, catchword.worker, catchword.standstill,
  catchword.history
  to :"reader";
grant select on sequence catchword.job_id_seq, catchword.revision to :"reader";
-- [status, check] To see whose transaction holds vacuum back. Only a superuser can grant it.
select format('grant pg_read_all_stats to %I', :'reader')
  from pg_catalog.pg_roles where rolname = current_user and rolsuper
\gexec
-- [status, check] To know which jobs are live, part and whole, and when a refused one is due again.
grant execute on function
  catchword.priority_quick(), catchword.priority_live(), catchword.priority_part(), catchword.priority_whole(),
  catchword.retry_at(integer)
  to :"reader";
-- [every command] To read what is attached: names, keys, triggers, views, and whether anything is doubtful about them.
grant execute on function
  catchword.named(text, text), catchword.full_name(regclass), catchword.has_column(regclass, text),
  catchword.has_ids(text, name[]), catchword.quoted(text), catchword.operator(oid, smallint),
  catchword.equality(oid), catchword.key_type(oid),
  catchword.key_types(regclass, name[]), catchword.part_text(text, text, boolean),
  catchword.part_of(text, integer, integer), catchword.part_value(text, text, integer, integer),
  catchword.part_condition(text, text), catchword.key_names(name[], text[], text, text),
  catchword.names_of(catchword.collection, text), catchword.members(text),
  catchword.whole_name(catchword.collection), catchword.schemas_of(text), catchword.matching(text),
  catchword.attached_members(text, oid, oid), catchword.touch_owner(text, jsonb), catchword.each_once(jsonb),
  catchword.hidden_rows(text, oid), catchword.reader(),
  catchword.foreign_key(regclass, jsonb), catchword.names_in(jsonb), catchword.element_type(oid),
  catchword.primary_key(regclass), catchword.later_triggers(regclass, text),
  catchword.trigger_name(text, text),
  catchword.tree(regclass), catchword.is_partitioned(regclass), catchword.rows_in(regclass),
  catchword.about_rows(regclass), catchword.partitions_of(text, regclass),
  catchword.sees_all(oid, oid), catchword.secured_reads(text, oid),
  catchword.security_problems(regclass, jsonb, text, oid, oid),
  catchword.trigger_problems(text), catchword.column_problems(text), catchword.table_problems(text),
  catchword.right_problems(text), catchword.broken_triggers(text), catchword.problems(text, text, name[], text, text),
  catchword.view_facts(text), catchword.view_digest(text), catchword.same_view(text, text), catchword.unsteady(text),
  catchword.opaque(text), catchword.needless(text), catchword.copy_of(), catchword.touch_plans(text),
  catchword.attached(text[], text[], text[], jsonb[], text), catchword.unmigrated(text, text, jsonb, text),
  catchword.unwatched_tables(catchword.collection, oid[]), catchword.unwatched_columns(catchword.collection, text[])
  to :"reader";
-- [status, reindex list] To see how far reindexes came.
grant execute on function catchword.reindexes(text, bigint, bigint) to :"reader";
-- [explain] To see which documents a change of a related table will still reach.
grant execute on function catchword.touched_soon(text, text[]) to :"reader";
-- [explain] To know the id of a document. One that nobody has asked for yet is written down; no row and no document
-- changes by it.
grant execute on function catchword.name_documents(text, text[], text[]) to :"reader";
-- [serve] To know which revision a key has, whether its job was given up, and whether one is open.
grant execute on function catchword.known(text, text[]), catchword.standing(text, text[], timestamptz) to :"reader";
-- [serve] To know whose key it is that asks.
grant execute on function
  catchword.find_key(text), catchword.has_keys(), catchword.note_key_used(text)
  to :"reader";
\endif

\if :has_service
-- [connect] To find what is in the schema.
grant usage on schema catchword to :"service";
-- [connect] To see which version the schema is, which collections there are, who we are, what is paused or rebuilt.
grant select on
  catchword._migrations, catchword.collection, catchword.installation, catchword.pause, catchword.rebuild
  to :"service";
-- [connect] To read what is attached.
grant execute on function
  catchword.named(text, text), catchword.full_name(regclass), catchword.has_column(regclass, text),
  catchword.has_ids(text, name[]), catchword.quoted(text), catchword.operator(oid, smallint),
  catchword.equality(oid), catchword.key_type(oid),
  catchword.key_types(regclass, name[]), catchword.part_text(text, text, boolean),
  catchword.part_of(text, integer, integer), catchword.part_value(text, text, integer, integer),
  catchword.part_condition(text, text), catchword.key_names(name[], text[], text, text),
  catchword.names_of(catchword.collection, text), catchword.members(text),
  catchword.whole_name(catchword.collection), catchword.schemas_of(text), catchword.matching(text),
  catchword.attached_members(text, oid, oid), catchword.touch_owner(text, jsonb), catchword.each_once(jsonb),
  catchword.hidden_rows(text, oid), catchword.reader(),
  catchword.foreign_key(regclass, jsonb), catchword.names_in(jsonb), catchword.element_type(oid),
  catchword.primary_key(regclass), catchword.later_triggers(regclass, text),
  catchword.trigger_name(text, text),
  catchword.tree(regclass), catchword.is_partitioned(regclass), catchword.rows_in(regclass),
  catchword.about_rows(regclass), catchword.partitions_of(text, regclass),
  catchword.sees_all(oid, oid), catchword.secured_reads(text, oid),
  catchword.security_problems(regclass, jsonb, text, oid, oid),
  catchword.trigger_problems(text), catchword.column_problems(text), catchword.table_problems(text),
  catchword.right_problems(text), catchword.broken_triggers(text), catchword.problems(text, text, name[], text, text),
  catchword.view_facts(text), catchword.same_view(text, text), catchword.copy_of(),
  catchword.unmigrated(text, text, jsonb, text), catchword.unwatched_tables(catchword.collection, oid[]),
  catchword.unwatched_columns(catchword.collection, text[]),
  catchword.attached(text[], text[], text[], jsonb[], text)
  to :"service";
-- [store_and_schedule, index_now] To know the number of a delete or a touch.
grant select on catchword.record to :"service";
-- [store_and_schedule, index_now] To know the ids of documents, and to write a new one down before it is used.
grant select on catchword.document_id to :"service";
grant execute on function catchword.name_documents(text, text[], text[]) to :"service";
-- [wait_until] To know which revision a key has, whether its job was given up, and whether one is open.
grant execute on function catchword.known(text, text[]), catchword.standing(text, text[], timestamptz) to :"service";
\endif

-- The application's own triggers: to say that rows must be looked at again.
grant usage on schema catchword to :"application";
grant execute on function catchword.touch_later(text, text, text), catchword.touch_later(text, text, anyelement)
  to :"application";
-- The application itself: to ask whether its write has reached the index. It tells numbers, times and reasons, and no
-- content of a row. Nothing else of the schema is theirs.
grant execute on function catchword.standing(text, text[], timestamptz) to :"application";

-- To read what a document is made of: each attached table and its view, and the schemas they are in. Whoever may use a
-- schema already is left out: `public` before Postgres 15 is open to all, and belongs to none but the superuser.
select format('grant usage on schema %I to %I', nspname, name)
  from (select n.nspname, n.oid as schema
          from catchword.collection c
          join pg_catalog.pg_class r on r.oid in (c.source, to_regclass(c.view))
          join pg_catalog.pg_namespace n on n.oid = r.relnamespace group by n.nspname, n.oid) as needed,
       unnest(array[:'worker', :'reader', :'service']) as reader (name)
 where case when name <> '' then not has_schema_privilege(name, schema, 'usage') end
\gexec
select format('grant select on %s, %s to %I', source, view, reader.name)
  from catchword.collection, unnest(array[:'worker', :'reader', :'service']) as reader (name)
 where reader.name <> '' and exists (select from pg_catalog.pg_class where oid = source)
   and to_regclass(view) is not null
\gexec

\endif

commit;
