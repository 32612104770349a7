-- How the rows of each related table of collection $1 are found.
select p.related, p.found_by, p.plan, p.problem, p.remedy from catchword.touch_plans($1) as p
