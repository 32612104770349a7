-- What the role that asks lacks of what grants.sql gives a worker, and what it has beyond it.
select (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user) as superuser,
       current_user::text as role,
       array(select format('%s on %s', n.privilege, n.object)
               from unnest($1::text[], $2::text[], $3::text[]) as n (kind, object, privilege)
              where not coalesce(case n.kind when 'function' then has_function_privilege(current_user, to_regprocedure(n.object)::oid, n.privilege)
                                             when 'sequence' then has_sequence_privilege(current_user, to_regclass(n.object)::oid, n.privilege)
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
       pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_sessions
