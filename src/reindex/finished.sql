select r.finished_at is not null from catchword.reindex r where r.id = $1
