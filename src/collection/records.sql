-- a page of the keys whose delete is recorded, as keys.sql
select coalesce(array_agg(page.key) filter (where page.picked), '{}') as keys, (array_agg(page.key))[$4::integer] as last
  from (
    select d.key, $3::timestamptz is null or d.deleted_at >= $3 as picked
      from catchword.tombstone d
     where d.collection = $1 and d.key > $2
     order by d.key
     limit $4
  ) as page
