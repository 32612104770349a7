-- a page of the keys whose delete is recorded
select d.key, $3::timestamptz is null or d.deleted_at >= $3 as picked
  from catchword.tombstone d
 where d.collection = $1 and d.key > $2
 order by d.key
 limit $4
