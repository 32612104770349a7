with discarded as (
  delete from catchword.dead_job
   where ($1::bigint[] is null or id = any($1))
     and ($2::text is null or collection = $2)
     and ($3::text is null or reason = $3)
     and ($4::text is null or tag = $4)
     and ($5::timestamptz is null or died_at >= $5)
  returning id
),
noted as (
  insert into catchword.journal (who, what, collection, detail, count)
  select $6, 'discard', $2, $7, count(*) from discarded having count(*) > 0
)
select count(*) from discarded
