-- about how many rows and records there are; below 0: nobody knows
select catchword.about_rows(to_regclass($1))::bigint as rows,
       (select count(*) from (select from catchword.record where collection = $2 and revision % 2 = 1 limit 100000) as counted) as records
