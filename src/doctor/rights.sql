-- What the role that asks lacks of what grants.sql gives, what it has beyond it, and whether our functions are safe from what others plant.
select (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user) as superuser,
       current_user::text as role,
       array(select n.position
               from unnest($1::text[], $2::text[], $3::text[]) with ordinality as n (kind, object, privilege, position)
              where not coalesce(case n.kind when 'function' then has_function_privilege(current_user, to_regprocedure(n.object)::oid, n.privilege)
                                             when 'sequence' then has_sequence_privilege(current_user, to_regclass(n.object)::oid, n.privilege)
                                             when 'schema' then has_schema_privilege(current_user, to_regnamespace(n.object)::oid, n.privilege)
                                             else has_table_privilege(current_user, to_regclass(n.object)::oid, n.privilege) end, true)
              order by 1) as missing,
       array(select format('select on %s', coalesce(unreadable.name, 'a table that is gone'))
               from catchword.collection c,
                    lateral (values (c.source::text, has_table_privilege(current_user, c.source, 'select')),
                                    (c.view, has_table_privilege(current_user, to_regclass(c.view)::oid, 'select'))) as unreadable (name, may)
              where not coalesce(unreadable.may, true)
              order by 1) as unreadable,
       array(select c.source::text from catchword.collection c
              where has_table_privilege(current_user, c.source, 'insert') or has_table_privilege(current_user, c.source, 'update')
                 or has_table_privilege(current_user, c.source, 'delete')
              order by 1) as writable,
       pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_sessions,
       (select bool_and(has_function_privilege(n.nspowner, named.function, 'execute'))
          from pg_catalog.pg_namespace n,
               (values ('pg_catalog.pg_control_system()'), ('pg_catalog.pg_current_wal_lsn()'), ('pg_catalog.pg_walfile_name(pg_lsn)')) as named (function)
         where n.nspname = 'catchword') as sees_server,
       -- a procedure that commits cannot have a path of its own: there is nothing in it that is looked up
       array(select p.oid::regprocedure::text from pg_catalog.pg_proc p
              where p.pronamespace = 'catchword'::regnamespace and p.prokind <> 'p'
                and not exists (select from unnest(p.proconfig) as s (setting) where s.setting ~ '^search_path=pg_catalog, pg_temp$')
              order by 1) as unpinned,
       array(select format('%s of %s', p.oid::regprocedure, pg_get_userbyid(p.proowner))
               from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
              where n.nspname = 'catchword' and p.proowner <> n.nspowner
              order by 1) as strangers,
       array(select format('%s', grantee.name)
               from pg_catalog.pg_namespace n, lateral aclexplode(n.nspacl) as a, lateral (select case a.grantee when 0 then 'public' else pg_get_userbyid(a.grantee)::text end) as grantee (name)
              where n.nspname = 'catchword' and a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
              order by 1) as creators,
       -- views are read under the role's own path, so a function of theirs that looks names up there is only as safe as its schemas
       array(with recursive below (relation) as (
               select to_regclass(c.view)::oid from catchword.collection c
               union
               select d.refobjid
                 from below b
                 join pg_catalog.pg_rewrite r on r.ev_class = b.relation
                 join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
             )
             select distinct p.oid::regprocedure::text
               from below b
               join pg_catalog.pg_rewrite r on r.ev_class = b.relation
               join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_catalog.pg_proc'::regclass
               join pg_catalog.pg_proc p on p.oid = d.refobjid and p.pronamespace <> 'pg_catalog'::regnamespace and p.prosqlbody is null
               join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname not in ('c', 'internal')
              where not exists (select from unnest(p.proconfig) as s (setting) where s.setting like 'search\_path=%')
              order by 1) as exposed,
       array(select n.nspname::text
               from pg_catalog.pg_namespace n
              where n.nspname = any (regexp_split_to_array(replace(replace(coalesce(current_setting('catchword.path', true), ''), '"', ''), '$user', current_user::text), ' *, *'))
                and exists (select from aclexplode(n.nspacl) as a
                             where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner and not exists (select from pg_catalog.pg_roles o where o.oid = a.grantee and o.rolsuper))
              order by 1) as open_schemas
