-- Which server and which database this is. Where commits may be lost, their numbers would be given twice: then the
-- sequence is raised.

create table catchword.installation (
  only_one          boolean primary key default true constraint installation_is_one check (only_one),
  id                uuid not null default gen_random_uuid(),
  previous_id       uuid,
  database_oid      oid,
  relation_oid      oid,
  system_identifier bigint,
  timeline          integer,
  started_at        timestamptz,
  last_revision     bigint,
  seen_at           timestamptz,
  doubt             text
);
comment on table  catchword.installation
  is 'who we are: an index carries this id, so that staging never writes to production';
comment on column catchword.installation.only_one is 'holds the table to one row';
comment on column catchword.installation.id is 'written into the _meta of every index';
comment on column catchword.installation.previous_id
  is 'while indices are taken over from the database that this one is a copy of: its id';
comment on column catchword.installation.database_oid
  is 'of the database, as last seen; a copy has another, and so has a database that was put back';
comment on column catchword.installation.relation_oid
  is 'of this table, as last seen; it changes when a dump is put back into the same database';
comment on column catchword.installation.system_identifier is 'of the server, as last seen; null: it may not be seen';
comment on column catchword.installation.timeline
  is 'of the server, as last seen; it changes with a failover or a restore';
comment on column catchword.installation.started_at
  is 'when the server was started, as last seen; a copy that was put back shows by nothing else';
comment on column catchword.installation.last_revision is 'of the sequence, as last seen';
comment on column catchword.installation.seen_at is 'when that was';
comment on column catchword.installation.doubt
  is 'why numbers may have been given twice, noticed elsewhere; the next tick raises the sequence for it';
insert into catchword.installation (database_oid, relation_oid)
select d.oid, 'catchword.installation'::regclass from pg_catalog.pg_database d where d.datname = current_database();

-- Raising the sequence is the one thing here that can hand out a number twice if done carelessly: one at a time, and
-- never back. Nobody is ahead by 2^52 through lost commits: two thousand years of the jumps below. Such a version was
-- written by somebody else, and to follow it would use up the numbers.
create function catchword.raise_revision(p_above bigint) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current bigint;
begin
  perform from catchword.turn where what = 'revision' for update;
  select last_value into current from catchword.revision;
  if p_above >= least(current + (1::bigint << 52), 1::bigint << 62) then
    return false;
  elsif p_above >= current then
    perform setval('catchword.revision', (p_above + 1000000) / 4 * 4);
  end if;
  return true;
end $$;
comment on function catchword.raise_revision
  is 'lifts the sequence above a version seen in Elasticsearch; false: too high to be true';

-- A managed service may keep the server's identity to itself. What cannot be seen is null, and is no difference; doctor
-- tells. It is looked at in steps, because a statement that names a function without the right to it fails as a whole.
create function catchword.which_server(out system_identifier bigint, out timeline integer)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    system_identifier := (select c.system_identifier from pg_control_system() as c);
  end if;
  if has_function_privilege('pg_catalog.pg_walfile_name(pg_lsn)', 'execute')
     and has_function_privilege('pg_catalog.pg_current_wal_lsn()', 'execute') then
    timeline := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer;
  end if;
-- a server without files of its log, such as one whose storage is a service
exception when feature_not_supported or object_not_in_prerequisite_state then
  null;
end $$;
comment on function catchword.which_server
  is 'the identity of the server and its timeline; null: this may not be seen';

-- A database is known by its oid on the server. Put back from a copy or a dump it has another, and its own one, the
-- remembered, is gone: its numbers will be given again. If that one is still there, this database is a copy, and the
-- indices are the other's.
create function catchword.copy_of() returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select original.datname
    from catchword.installation i
    join pg_database mine on mine.datname = current_database() and mine.oid <> i.database_oid
    join pg_database original on original.oid = i.database_oid
   where coalesce(i.system_identifier = (catchword.which_server()).system_identifier, true)
$$;
comment on function catchword.copy_of is 'the database on this server that this one is a copy of; null: it is no copy';

-- After a failover or a restore the server has another timeline, or is another server: commits may be lost and their
-- numbers given again. The sequence jumps far ahead, before anything is written. A copy of the data folder that was
-- put back, and a crash with synchronous_commit off, change neither: all that shows is that the server was started
-- again, so every start costs a jump, and nobody is alarmed by it. A jump of a fixed width would end at the same number
-- when one backup is put back twice. So it also goes by the clock, 2^20 numbers a second since 2020: more than anybody
-- draws, and below 2^53 for 270 years.
create function catchword.note_server() returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  current_system bigint;
  current_database_oid oid := (select oid from pg_database where datname = current_database());
  current_timeline integer;
  before catchword.installation;
  current bigint;
  why text;
  switched boolean := false;
begin
  -- nothing is taken note of in a copy, so that it stays known as one
  if catchword.copy_of() is not null then
    return false;
  end if;
  select w.system_identifier, w.timeline into current_system, current_timeline from catchword.which_server() as w;
  select * into before from catchword.installation for update;
  perform from catchword.turn where what = 'revision' for update;
  select last_value into current from catchword.revision;
  if before.system_identifier <> current_system or before.timeline <> current_timeline then
    switched := true;
    why := format('another server or timeline: %s/%s, was %s/%s',
                  current_system, current_timeline, before.system_identifier, before.timeline);
  elsif before.database_oid <> current_database_oid then
    switched := true;
    why := format('the database was put back: its oid is %s, was %s', current_database_oid, before.database_oid);
  elsif before.relation_oid <> 'catchword.installation'::regclass then
    switched := true;
    why := format('the schema catchword was put back: the oid of its tables is %s, was %s',
                  'catchword.installation'::regclass::oid, before.relation_oid);
  elsif current < before.last_revision then
    switched := true;
    why := format('the sequence went back: %s, was %s', current, before.last_revision);
  elsif before.doubt is not null then
    switched := true;
    why := before.doubt;
  elsif before.started_at <> pg_postmaster_start_time() then
    why := format('the server was started again: %s, was %s', pg_postmaster_start_time(), before.started_at);
  end if;
  if why is not null then
    perform setval('catchword.revision', greatest(
      greatest(current, before.last_revision) + case when switched then 1::bigint << 40 else 1::bigint << 32 end,
      floor(extract(epoch from clock_timestamp() - timestamptz '2020-01-01 00:00:00+00') * (1 << 18))::bigint * 4));
    insert into catchword.journal (who, what, detail) values ('catchword', 'raise', why);
  end if;
  if switched then
    -- equal numbers may stand for different documents now, and documents for rows that were never committed
    perform catchword.ask_audit(name, true, 'another server') from catchword.collection;
  end if;
  update catchword.installation
     set database_oid = current_database_oid, relation_oid = 'catchword.installation'::regclass, doubt = null,
         system_identifier = coalesce(current_system, before.system_identifier),
         timeline = coalesce(current_timeline, before.timeline),
         started_at = pg_postmaster_start_time(), seen_at = now(),
         last_revision = (select last_value from catchword.revision);
  return switched;
end $$;
comment on function catchword.note_server
  is 'remembers which server this is, and raises the sequence where numbers may be given twice; true: commits may be '
     'lost';

-- Somebody saw in an index what this database does not remember. The next tick raises the sequence and asks for audits.
create function catchword.note_doubt(p_collection text, p_target text, p_version bigint, p_why text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.sentinel set tried = (p_version || tried)[1:60]
   where collection = p_collection and target = p_target;
  update catchword.installation set doubt = p_why where doubt is null;
$$;
comment on function catchword.note_doubt
  is 'numbers may have been given twice: the next tick raises the sequence and asks for audits with content';

-- A copy becomes an installation of its own: its indices are yet to be made.
create function catchword.new_installation() returns uuid
language sql set search_path = pg_catalog, pg_temp as $$
  update catchword.collection set targets = '{}';
  delete from catchword.sentinel;
  delete from catchword.audit where finished_at is null;
  update catchword.rebuild set stage = 'aborted', finished_at = now() where finished_at is null;
  insert into catchword.journal (what, detail)
  select 'new installation', format('was a copy of %s', catchword.copy_of());
  update catchword.installation
     set id = gen_random_uuid(), previous_id = null, relation_oid = 'catchword.installation'::regclass,
         database_oid = (select oid from pg_catalog.pg_database where datname = current_database())
  returning id;
$$;
comment on function catchword.new_installation
  is 'gives a copy of a database an id of its own, so that it has indices of its own';

-- A copy takes the indices over. Its numbers may have been given by the original too.
create function catchword.take_over() returns uuid
language sql set search_path = pg_catalog, pg_temp as $$
  insert into catchword.journal (what, detail) select 'take over', format('from %s', catchword.copy_of());
  update catchword.installation
     set previous_id = id, id = gen_random_uuid(), relation_oid = 'catchword.installation'::regclass,
         doubt = format('the indices were taken over from the database %s', catchword.copy_of()),
         database_oid = (select oid from pg_catalog.pg_database where datname = current_database())
  returning id;
$$;
comment on function catchword.take_over
  is 'gives a copy of a database an id of its own, under which it claims the original''s indices';

revoke execute on all functions in schema catchword from public;
