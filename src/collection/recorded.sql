-- The records of keys that cannot have a row: an id of a document that is not of the key's type.
select d.key, d.revision as version
  from catchword.tombstone d
 where d.collection = $1 and d.key = any($2::text[])
