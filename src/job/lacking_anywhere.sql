-- Keys whose documents no index can have, whatever its mapping: how many there are.
select count(distinct d.key)
  from catchword.dead_job d
 where d.collection = $1 and d.reason in ('bad_key', 'too_large', 'unbuildable')
   and not exists (select from catchword.dead_job o where o.collection = d.collection and o.key = d.key and o.reason not in ('bad_key', 'too_large', 'unbuildable'))
