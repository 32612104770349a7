select collection, since, extract(epoch from clock_timestamp() - since)::float8 as seconds, by, reason
  from catchword.pause
 order by collection
