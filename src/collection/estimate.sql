-- about how many rows and records there are; below 0: nobody knows
select (select c.reltuples::bigint from pg_catalog.pg_class c where c.oid = to_regclass($1)) as rows,
       (select count(*) from (select from catchword.record where collection = $2 and revision % 2 = 1 limit 100000) as counted) as records
