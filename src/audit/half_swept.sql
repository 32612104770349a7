-- Of these keys, those whose delete is old enough to be swept: its tombstone may be gone, and nothing can come any more that it would refuse.
select d.key
  from catchword.record d
 where d.collection = $1 and d.key = any($2) and d.recorded_at < now() - make_interval(secs => $3)
   and not exists (select from catchword.record higher where higher.collection = d.collection and higher.key = d.key and higher.revision > d.revision)
