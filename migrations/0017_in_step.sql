-- What "in step" rests on beside the triggers: a view whose documents change only with rows that are watched, and a database that is the one
-- whose indices these are.

-- Functions below a view that say something else at another time or to another session. A function of the system is judged by what Postgres
-- says of it: volatile; stable is also what only reads settings, which our sessions pin, so of the stable ones these are meant. The body of a
-- function may be text: there only the names can be looked for.
create function catchword.unsteady(p_view text) returns table (name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with below as materialized (select class, object from catchword.below(p_view)),
  trees (tree) as (
    select r.ev_action::text from below b join pg_rewrite r on r.ev_class = b.object and r.ev_type = '1' where b.class = 'pg_class'::regclass
    union all
    select p.prosqlbody::text from below b join pg_proc p on p.oid = b.object where b.class = 'pg_proc'::regclass and p.prosqlbody is not null
  ),
  words (word) as (
    select distinct lower(w) from below b join pg_proc p on p.oid = b.object, regexp_split_to_table(p.prosrc, '[^[:alnum:]_$]+') as w
     where b.class = 'pg_proc'::regclass and p.prosqlbody is null
  ),
  told (word) as (
    values ('now'), ('transaction_timestamp'), ('statement_timestamp'), ('clock_timestamp'), ('timeofday'), ('current_date'), ('current_time'),
           ('current_timestamp'), ('localtime'), ('localtimestamp'), ('random'), ('random_normal'), ('gen_random_uuid'), ('uuidv4'), ('uuidv7'),
           ('current_setting'), ('current_user'), ('session_user'), ('current_role'), ('inet_client_addr'), ('pg_backend_pid')
  )
  select p.proname::text || '()'
    from (select distinct m[1]::oid as oid from trees, regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') as m) as called
    join pg_proc p on p.oid = called.oid
   where p.oid < 16384 and (p.provolatile = 'v' or p.proname in (select word from told) or p.proname = 'age' and p.pronargs = 1)
  union
  select (array['current_date', 'current_time', 'current_time', 'current_timestamp', 'current_timestamp', 'localtime', 'localtime', 'localtimestamp',
                'localtimestamp', 'current_role', 'current_user', 'user', 'session_user', 'current_catalog', 'current_schema'])[m[1]::integer + 1]
    from trees, regexp_matches(tree, 'SQLVALUEFUNCTION :op (\d+)', 'g') as m
  union
  select word from words join told using (word)
   order by 1
$$;
comment on function catchword.unsteady is 'what a view calls that says something else at another time or to another session';

-- Functions of somebody's own below a view whose body is text and that may read tables: which ones, nobody is told.
create function catchword.opaque(p_view text) returns table (name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select distinct p.oid::regprocedure::text
    from catchword.below(p_view) b
    join pg_proc p on p.oid = b.object and p.prosqlbody is null and p.provolatile <> 'i'
    join pg_language l on l.oid = p.prolang and l.lanname not in ('c', 'internal')
   where b.class = 'pg_proc'::regclass
   order by 1
$$;
comment on function catchword.opaque is 'functions that a view calls and that may read tables which nobody can name';

-- Tables that are waived and that the view does not read (any more).
create function catchword.needless(p_collection text) returns table (name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select u.name from catchword.collection c, unnest(c.unwatched) as u (name)
   where c.name = p_collection and not exists (select from unnest((select f.reads from catchword.view_facts(c.view) f)) as r (read) where r.read = to_regclass(u.name))
   order by 1
$$;
comment on function catchword.needless is 'tables of unwatched that the view does not read';

-- Somebody saw in an index what this database does not remember. The next tick raises the sequence and asks for audits.
create function catchword.note_doubt(p_collection text, p_target text, p_version bigint, p_why text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.sentinel set tried = (p_version || tried)[1:60] where collection = p_collection and target = p_target;
  update catchword.installation set doubt = p_why where doubt is null;
$$;
comment on function catchword.note_doubt is 'numbers may have been given twice: the next tick raises the sequence and asks for audits with content';

-- What its triggers rest on was broken, or is whole again. Nobody knows what was written meanwhile: an audit finds it.
create function catchword.note_broken(p_collection text, p_broken boolean) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_broken then
    update catchword.collection set broken_at = now() where name = p_collection and broken_at is null;
  else
    update catchword.collection set broken_at = null where name = p_collection and broken_at is not null;
    if found then
      perform catchword.ask_audit(p_collection, false, 'was broken');
    end if;
  end if;
end $$;
comment on function catchword.note_broken is 'remembers that a collection is broken; when it is not any more, asks for an audit';

-- A copy becomes an installation of its own: its indices are yet to be made.
create function catchword.new_installation() returns uuid
language sql set search_path = pg_catalog, pg_temp as $$
  update catchword.collection set targets = '{}';
  delete from catchword.sentinel;
  delete from catchword.audit where finished_at is null;
  update catchword.rebuild set stage = 'aborted', finished_at = now() where finished_at is null;
  insert into catchword.journal (what, detail) select 'new installation', format('was a copy of %s', catchword.copy_of());
  update catchword.installation
     set id = gen_random_uuid(), previous_id = null, relation_oid = 'catchword.installation'::regclass,
         database_oid = (select oid from pg_catalog.pg_database where datname = current_database())
  returning id;
$$;
comment on function catchword.new_installation is 'gives a copy of a database an id of its own, so that it has indices of its own';

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
comment on function catchword.take_over is 'gives a copy of a database an id of its own, under which it claims the original''s indices';

revoke execute on all functions in schema catchword from public;
