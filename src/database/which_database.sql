-- Which database of which server this is, in numbers that no setting shapes. Names are written out: the path is the caller's.
select d.oid::pg_catalog.int8 as database,
       pg_catalog.round(pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time()) operator(pg_catalog.*) 1000)::pg_catalog.int8 as started
  from pg_catalog.pg_database d
 where d.datname operator(pg_catalog.=) pg_catalog.current_database()
