select id, name, collection, key, tag, attempts, reason, last_error, enqueued_at, died_at
  from catchword.dead_job
 where ($1::bigint[] is null or id = any($1))
   and ($2::text is null or collection = $2)
   and ($3::text is null or reason = $3)
   and ($4::text is null or tag = $4)
   and ($5::timestamptz is null or died_at >= $5)
   and ($6::text is null or coalesce(last_error, '') = $6)
 order by died_at desc, id desc
 limit $7
