-- What is doubtful about the view of collection $1, and about what is waived for it; where it has many, about any of them.
select array(select distinct u.name from catchword.members($1) as c, catchword.unsteady(c.view) as u order by 1) as unsteady,
       array(select distinct o.name from catchword.members($1) as c, catchword.opaque(c.view) as o order by 1) as opaque,
       array(select distinct n.name from catchword.needless($1) as n order by 1) as needless,
       array(select distinct u.name from catchword.members($1) as c, unnest(c.unwatched) as u (name)
              where u.name not in (select n.name from catchword.needless($1) as n) order by 1) as waived
