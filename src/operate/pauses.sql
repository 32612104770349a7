select collection, extract(epoch from clock_timestamp() - since)::float8 as seconds from catchword.pause order by collection
