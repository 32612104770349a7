select at, who, what, collection, detail, count
  from catchword.journal
 where $1::text[] is null or collection = any($1)
 order by id desc
 limit $2
