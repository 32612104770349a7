-- What is doubtful about the view of collection $1, and about what is waived for it.
select array(select u.name from catchword.unsteady(c.view) u) as unsteady,
       array(select o.name from catchword.opaque(c.view) o) as opaque,
       array(select n.name from catchword.needless(c.name) n) as needless
  from catchword.collection c
 where c.name = $1
