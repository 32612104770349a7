-- Run by an application that may create in public: things of every name that catchword uses, each of which gives its creator away when
-- anybody else runs it. $1 stands for the names of functions, $2 for those of operators; the test puts them in.
set search_path = pg_catalog, pg_temp;

-- a sequence remembers also what was rolled back
create sequence public.ran;
grant usage on sequence public.ran to public;
create function public.planted_ran(p_what text) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if current_user <> session_user or current_user !~ '^cw_application' then
    perform nextval('public.ran');
    raise exception 'planted % ran as % in a session of %', p_what, current_user, session_user;
  end if;
end $$;

do $plant$
declare
  types constant text[] := '{text,name,integer,bigint,smallint,boolean,regclass,oid,jsonb,json,timestamptz,interval,text[],name[],bigint[],uuid,numeric,"double precision",uuid[],"\"char\""}';
  few constant text[] := '{text,name,integer,bigint,jsonb,regclass,timestamptz,text[]}';
  f record;
  a text;
  b text;
  c text;
  o text;
  planted integer := 0;
begin
  -- the very arguments of Postgres' own functions, for whoever names pg_catalog last
  for f in
    select p.oid, p.proname, p.proretset, format_type(p.prorettype, null) as returned, array(select format_type(t, null) from unnest(p.proargtypes) t) as arguments,
           p.provariadic <> 0 or exists (select from pg_type t where t.oid = any(p.proargtypes::oid[]) and t.typtype = 'p') as loose
      from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any($1)
  loop
    begin
      execute format('create function public.%I(%s) returns %s %s language plpgsql as %L', f.proname, array_to_string(f.arguments, ', '),
        case when f.proretset then 'setof' else '' end, f.returned, format('begin perform public.planted_ran(%L); return%s; end', f.proname, case when f.proretset then '' else ' null' end));
      planted := planted + 1;
    exception when others then null;
    end;
    continue when not f.loose;
    -- closer ones than Postgres' own, for whoever names pg_catalog first, or not at all
    foreach a in array types loop
      begin
        execute format('create function public.%I(%s) returns text language plpgsql as %L', f.proname, a, format('begin perform public.planted_ran(%L); return null; end', f.proname));
      exception when others then null;
      end;
    end loop;
    foreach a in array few loop
      foreach b in array few loop
        begin
          execute format('create function public.%I(%s, %s) returns text language plpgsql as %L', f.proname, a, b, format('begin perform public.planted_ran(%L); return null; end', f.proname));
          planted := planted + 1;
        exception when others then null;
        end;
        continue when f.proname not in ('format', 'concat_ws');
        foreach c in array few loop
          begin
            execute format('create function public.%I(%s, %s, %s) returns text language plpgsql as %L', f.proname, a, b, c, format('begin perform public.planted_ran(%L); return null; end', f.proname));
          exception when others then null;
          end;
        end loop;
      end loop;
    end loop;
  end loop;
  assert planted > 500, planted;

  foreach a in array types loop
    foreach b in array types loop
      execute format('create function public.planted_operator(%s, %s) returns boolean language plpgsql as %L', a, b, 'begin perform public.planted_ran(''an operator''); return null; end');
      foreach o in array $2 loop
        execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.planted_operator)', o, a, b);
      end loop;
    end loop;
  end loop;

  -- types of the names of Postgres' own, and casts to a type of one's own
  create function public.planted_type() returns boolean language plpgsql as 'begin perform public.planted_ran(''a type''); return true; end';
  foreach a in array array['text', 'name', 'regclass', 'regtype', 'regproc', 'regprocedure', 'regnamespace', 'oid', 'jsonb', 'json', 'timestamptz', 'uuid', 'float8', 'int8', 'bool'] loop
    execute format('create domain public.%I as pg_catalog.%I check (public.planted_type())', a, a);
  end loop;
  create type public.mine as (v pg_catalog.text);
  create function public.planted_cast(pg_catalog.text) returns public.mine language plpgsql as 'begin perform public.planted_ran(''a cast''); return null; end';
  create cast (pg_catalog.text as public.mine) with function public.planted_cast(pg_catalog.text) as implicit;

  -- tables of the names of Postgres' own, and of ours
  for f in select relname as name from pg_class where relnamespace in ('pg_catalog'::regnamespace, to_regnamespace('catchword')) and relkind in ('r', 'v') loop
    execute format('create view public.%I as select public.planted_type() as planted', f.name);
  end loop;
end $plant$;
grant execute on all functions in schema public to public;
