-- a page of the keys whose delete is recorded, as keys.sql; of several records of a key the highest counts
select coalesce(array_agg(page.key) filter (where page.picked), '{}') as keys, (array_agg(page.key))[$4::integer] as last
  from (
    select d.key, d.revision % 2 = 1 and ($3::timestamptz is null or d.recorded_at >= $3) as picked
      from catchword.record d
     where d.collection = $1 and d.key > $2
       and not exists (select from catchword.record higher where higher.collection = $1 and higher.key = d.key and higher.revision > d.revision)
     order by d.key
     limit $4
  ) as page
