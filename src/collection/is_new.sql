select not exists (select from catchword.collection c where c.name = $1)
