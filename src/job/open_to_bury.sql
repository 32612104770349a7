-- the jobs of a key, or a touch by its own key; as in open_of_key.sql, for one person at a terminal
select count(*) from catchword.job where collection = $1 and key = $2
