-- Whole pages, drawn by chance: $2 percent of them
select count(*) as jobs, 0::bigint as waiting from catchword.dead_job tablesample system ($2) where collection = $1
