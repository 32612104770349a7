-- about how many rows and records there are; below 0: nobody knows
select (select sum(catchword.about_rows(m.source)) from catchword.members($1) as m)::bigint as rows,
       (select count(*) from (select from catchword.record where collection = $1 and revision % 2 = 1 limit 100000) as counted) as records
