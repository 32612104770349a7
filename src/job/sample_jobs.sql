-- Whole pages, drawn by chance: $2 percent of them
select count(*) as jobs, count(*) filter (where scheduled_at > now()) as waiting from catchword.job tablesample system ($2) where collection = $1
