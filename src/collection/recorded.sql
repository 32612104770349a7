-- The records of keys that cannot have a row: an id of a document that is not of the key's type.
select d.key, max(d.revision) as version
  from catchword.record d
 where d.collection = $1 and d.key = any($2::text[])
 group by d.key
having max(d.revision) % 2 = 1
