-- Schemas of a collection that came or went since everything was last compared and repaired. Whoever took one in or let it go asked for
-- an audit in the same transaction, so what it finds there is no drift. Rows that were there when a schema came have its floor as number.
select substr(j.detail, length('schema ') + 1) as schema,
       bool_or(j.what = 'detach') as went,
       max(m.floor) filter (where j.what = 'attach') as floor
  from catchword.journal j
  join catchword.collection c on c.name = j.collection
  left join catchword.collection m on m.member_of = c.name and 'schema ' || m.schema = j.detail
 where c.name = $1 and j.what in ('attach', 'detach') and j.detail like 'schema %' and j.at > c.attached_at
   and j.at > coalesce((select max(a.asked_at) from catchword.audit a
                         where a.collection = c.name and a.whole and a.repair and a.finished_at is not null), '-infinity')
 group by j.detail
 order by j.detail
