-- What is doubtful about the view of collection $1, and about what is waived for it.
select array(select u.name from catchword.unsteady(c.view) u) as unsteady,
       array(select o.name from catchword.opaque(c.view) o) as opaque,
       array(select n.name from catchword.needless(c.name) n) as needless,
       array(select u.name from unnest(c.unwatched) as u (name)
              where u.name not in (select n.name from catchword.needless(c.name) n) order by u.name) as waived
  from catchword.collection c
 where c.name = $1
