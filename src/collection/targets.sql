-- The indices that must agree, and of a collection over many schemas these, as they are now.
select c.targets, case when c.schemas is not null then array(select m.schema from catchword.members($1) as m) else '{}' end as schemas
  from catchword.collection c where c.name = $1
