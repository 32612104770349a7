-- What a view is made of: whether its documents change only with rows that are watched, and whether it is the view
-- that they were built with.

-- What a view is made of, as far as the catalogs know: views below it, the tables and columns that they read,
-- functions, operators, types. Things of the system (oids below 16384) do not change and are not among them. Functions
-- whose body is text refer to nothing that Postgres records: what they name is looked for by name, so one too many may
-- be found, and never one too few but by dynamic SQL.
create function catchword.below(p_view text) returns table (class oid, object oid, part integer)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with recursive below (class, object, part) as (
    select 'pg_class'::regclass::oid, to_regclass(p_view)::oid, 0
    union
    select n.class, n.object, n.part
      from below b
     cross join lateral (
       -- a view reads what its rule refers to; a table's own rules are about writing
       select d.refclassid, d.refobjid, d.refobjsubid
         from pg_class c
         join pg_rewrite r on r.ev_class = c.oid and r.ev_type = '1'
         join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
        where b.class = 'pg_class'::regclass and b.part = 0 and c.oid = b.object and c.relkind = 'v'
       union all
       -- a row as a whole reads every column: it shows only by its type
       select d.refclassid, a.attrelid, a.attnum
         from pg_class c
         join pg_rewrite r on r.ev_class = c.oid and r.ev_type = '1'
         join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
                         and d.refclassid = 'pg_class'::regclass
         join pg_class t on t.oid = d.refobjid
                        and position(':varattno 0 :vartype ' || t.reltype || ' ' in r.ev_action::text) > 0
         join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
        where b.class = 'pg_class'::regclass and b.part = 0 and c.oid = b.object and c.relkind = 'v'
       union all
       -- a column of a view is the view
       select b.class, b.object, 0 where b.class = 'pg_class'::regclass and b.part <> 0
       union all
       -- functions and operators refer to what they say
       select d.refclassid, d.refobjid, d.refobjsubid
         from pg_depend d
        where b.class in ('pg_proc'::regclass, 'pg_operator'::regclass)
          and d.classid = b.class and d.objid = b.object and d.deptype = 'n'
       union all
       -- the body of a function may be text: whatever it names and is a function of somebody's own
       select 'pg_proc'::regclass, named.oid, 0
         from pg_proc p
         join pg_language l on l.oid = p.prolang and l.lanname not in ('c', 'internal')
        cross join lateral (select distinct w.word
                              from regexp_split_to_table(p.prosrc, '[^[:alnum:]_$]+') as s (word),
                                   lateral (values (s.word), (lower(s.word))) as w (word)) as said
         join pg_proc named on named.proname = said.word and named.oid >= 16384 and named.oid <> p.oid
                           and named.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
        where b.class = 'pg_proc'::regclass and p.oid = b.object and p.prosqlbody is null
       union all
       -- a column: its type, and what it is generated from
       select 'pg_type'::regclass, a.atttypid, 0
         from pg_attribute a
        where b.class = 'pg_class'::regclass and b.part > 0 and a.attrelid = b.object and a.attnum = b.part
          and a.atttypid >= 16384
       union all
       select d.refclassid, d.refobjid, d.refobjsubid
         from pg_attribute a
         join pg_attrdef e on e.adrelid = a.attrelid and e.adnum = a.attnum
         join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = e.oid
                          -- before 15 the column itself depends on what it is generated from
                          or d.classid = 'pg_class'::regclass and d.objid = a.attrelid and d.objsubid = a.attnum
                             and d.refclassid in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass)
        where b.class = 'pg_class'::regclass and b.part > 0 and a.attrelid = b.object and a.attnum = b.part
          and a.attgenerated <> ''
       union all
       -- a type: what it is made of
       select 'pg_type'::regclass, m.made_of, 0
         from pg_type t
        cross join lateral (values (t.typbasetype), (t.typelem),
                                   ((select r.rngsubtype from pg_range r where r.rngtypid = t.oid))) as m (made_of)
        where b.class = 'pg_type'::regclass and t.oid = b.object and m.made_of >= 16384
       union all
       select 'pg_type'::regclass, a.atttypid, 0
         from pg_type t
         join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped and a.atttypid >= 16384
        where b.class = 'pg_type'::regclass and t.oid = b.object and t.typtype = 'c'
     ) as n (class, object, part)
  )
  select class, object, part from below
$$;
comment on function catchword.below is 'everything that a view is made of: class, object and column as in pg_depend';

-- How the catalogs store an expression or a query. Before 17 they also store where each part of it stood in the text of
-- the statement, and before 16 the oid of the view itself: neither is part of what it says.
create function catchword.what_it_says(p_tree text, p_view oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when current_setting('server_version_num')::integer >= 170000 then p_tree
              else regexp_replace(replace(p_tree, format(':relid %s ', p_view), ':relid 0 '),
                                  ':(location|stmt_location|stmt_len) -?[0-9]+', '', 'g') end
$$;
comment on function catchword.what_it_says
  is 'a query or an expression as the catalogs store it, without where it stood in a text';

-- A view is what all of that says, as the catalogs store it: to write it out as SQL, Postgres would lock the tables,
-- and somebody who holds one of them would stop the tick for every collection. Labels of enums follow in plain text:
-- one more changes no document, another name for one does.
create function catchword.view_facts(p_view text, out digest text, out reads oid[], out columns text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with below as materialized (select class, object, part from catchword.below(p_view)),
  parts (definition) as (
    select c.oid::regclass || ' ' || (select string_agg(catchword.what_it_says(r.ev_action::text, c.oid), ';'
                                                        order by r.rulename)
                                        from pg_rewrite r where r.ev_class = c.oid)
      from below b join pg_class c on c.oid = b.object
     where b.class = 'pg_class'::regclass and b.part = 0 and c.relkind in ('v', 'm')
    union all
    select concat_ws(' ', p.oid::regprocedure, p.prolang, p.provolatile, p.prosecdef, p.proconfig, p.prosrc,
                     catchword.what_it_says(p.prosqlbody::text, 0))
      from below b join pg_proc p on p.oid = b.object where b.class = 'pg_proc'::regclass and p.prokind <> 'a'
    union all
    select p.oid::regprocedure || ' '
           || array_to_string(array[a.aggtransfn::text, a.aggfinalfn::text, a.agginitval], ',', '-')
      from below b join pg_proc p on p.oid = b.object join pg_aggregate a on a.aggfnoid = p.oid
     where b.class = 'pg_proc'::regclass
    union all
    select concat_ws(' ', c.oid::regclass || '.' || a.attname, format_type(a.atttypid, a.atttypmod),
                     a.attcollation::regcollation, a.attgenerated, catchword.what_it_says(e.adbin::text, 0))
      from below b
      join pg_class c on c.oid = b.object and c.relkind not in ('v', 'm')
      join pg_attribute a on a.attrelid = c.oid and a.attnum = b.part and b.part > 0
      left join pg_attrdef e on a.attgenerated <> '' and e.adrelid = c.oid and e.adnum = a.attnum
     where b.class = 'pg_class'::regclass
    union all
    select format_type(t.oid, null) || ' '
           || string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ',' order by a.attnum)
      from below b
      join pg_type t on t.oid = b.object and t.typtype = 'c'
      join pg_class c on c.oid = t.typrelid and c.relkind = 'c'
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where b.class = 'pg_type'::regclass group by t.oid
  )
  select md5(string_agg(definition, ';' order by definition collate "C"))
         || coalesce(' ' || (
              select jsonb_agg(format('%s %s %s', format_type(e.enumtypid, null), e.enumsortorder, e.enumlabel)
                               order by e.enumtypid, e.enumsortorder)::text
                from below b join pg_enum e on e.enumtypid = b.object where b.class = 'pg_type'::regclass), ''),
         array(select distinct c.oid
                 from below b
                 join pg_class c on c.oid = b.object and c.relkind in ('r', 'p', 'f', 'm') and c.oid >= 16384
                where b.class = 'pg_class'::regclass),
         array(select distinct b.object || '.' || b.part
                 from below b join pg_class c on c.oid = b.object and c.relkind in ('r', 'p', 'f')
                where b.class = 'pg_class'::regclass and b.part > 0)
    from parts
$$;
comment on function catchword.view_facts
  is 'a digest of all that makes a view''s documents what they are; the tables that it reads; their columns as '
     'table.number';

create function catchword.view_digest(p_view text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select digest from catchword.view_facts(p_view)
$$;
comment on function catchword.view_digest is 'a digest of a view and of all that it is made of';

create function catchword.same_view(p_before text, p_now text) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select coalesce(split_part(p_before, ' ', 1) = split_part(p_now, ' ', 1)
                  and coalesce(nullif(substr(p_now, 34), ''), '[]')::jsonb
                      @> coalesce(nullif(substr(p_before, 34), ''), '[]')::jsonb, false)
$$;
comment on function catchword.same_view
  is 'are documents that were built under the first digest the same under the second?';

-- A view that changed and changed back left documents of the definition in between. Once another definition was seen,
-- nobody knows any more what documents were built with, until all of them are written again.
create function catchword.note_view_changed(p_collection text) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update catchword.collection set filled_view = null
   where p_collection in (name, member_of) and source is not null and filled_view is not null
     and not catchword.same_view(filled_view, catchword.view_digest(view))
$$;
comment on function catchword.note_view_changed
  is 'remembers that documents may have been built with another definition of the view than now';

-- Functions below a view that say something else at another time or to another session. A function of the system is
-- judged by what Postgres says of it: volatile; stable is also what only reads settings, which our sessions pin, so of
-- the stable ones these are meant. The body of a function may be text: there only the names can be looked for.
create function catchword.unsteady(p_view text) returns table (name text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  with below as materialized (select class, object from catchword.below(p_view)),
  trees (tree) as (
    select r.ev_action::text from below b join pg_rewrite r on r.ev_class = b.object and r.ev_type = '1'
     where b.class = 'pg_class'::regclass
    union all
    select p.prosqlbody::text from below b join pg_proc p on p.oid = b.object
     where b.class = 'pg_proc'::regclass and p.prosqlbody is not null
  ),
  words (word) as (
    select distinct lower(w)
      from below b join pg_proc p on p.oid = b.object, regexp_split_to_table(p.prosrc, '[^[:alnum:]_$]+') as w
     where b.class = 'pg_proc'::regclass and p.prosqlbody is null
  ),
  told (word) as (
    values ('now'), ('transaction_timestamp'), ('statement_timestamp'), ('clock_timestamp'), ('timeofday'),
           ('current_date'), ('current_time'), ('current_timestamp'), ('localtime'), ('localtimestamp'), ('random'),
           ('random_normal'), ('gen_random_uuid'), ('uuidv4'), ('uuidv7'), ('current_setting'), ('current_user'),
           ('session_user'), ('current_role'), ('inet_client_addr'), ('pg_backend_pid')
  )
  select p.proname::text || '()'
    from (select distinct m[1]::oid as oid
            from trees, regexp_matches(tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') as m) as called
    join pg_proc p on p.oid = called.oid
   where p.oid < 16384
     and (p.provolatile = 'v' or p.proname in (select word from told) or p.proname = 'age' and p.pronargs = 1)
  union
  select (array['current_date', 'current_time', 'current_time', 'current_timestamp', 'current_timestamp', 'localtime',
                'localtime', 'localtimestamp', 'localtimestamp', 'current_role', 'current_user', 'user', 'session_user',
                'current_catalog', 'current_schema'])[m[1]::integer + 1]
    from trees, regexp_matches(tree, 'SQLVALUEFUNCTION :op (\d+)', 'g') as m
  union
  select word from words join told using (word)
   order by 1
$$;
comment on function catchword.unsteady
  is 'what a view calls that says something else at another time or to another session';

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
  select u.name from catchword.members(p_collection) c, unnest(c.unwatched) as u (name)
   where not exists (select from unnest((select f.reads from catchword.view_facts(c.view) f)) as r (read)
                      where r.read = to_regclass(u.name))
   order by 1
$$;
comment on function catchword.needless is 'tables of unwatched that the view does not read';

revoke execute on all functions in schema catchword from public;
