-- A batch counts in the minute in which it began, and is committed a minute later at most.
select minute, collection, sum(settled)::bigint as settled, sum(written)::bigint as written
  from catchword.freshness
 where minute > now() - interval '3 minutes'
 group by minute, collection
 order by minute, collection
