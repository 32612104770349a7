-- How many of these keys have a row: from the index alone, at half of what it costs to say which.
select count(*) from {rows} t where {t_at $1}
