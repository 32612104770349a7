-- one line per error, the most frequent first; its newest dead letter as an example
select collection, reason, last_error, count(*) as count, min(died_at) as first, max(died_at) as last, max(id) as example
  from catchword.dead_job
 where ($1::bigint[] is null or id = any($1))
   and ($2::text is null or collection = $2)
   and ($3::text is null or reason = $3)
   and ($4::text is null or tag = $4)
   and ($5::timestamptz is null or died_at >= $5)
   and ($6::text is null or coalesce(last_error, '') = $6)
 group by collection, reason, last_error
 order by count(*) desc, collection, reason, last_error
 limit $7
