select id from catchword.reindex where collection = $1 and tag = $2 order by id desc limit 1
