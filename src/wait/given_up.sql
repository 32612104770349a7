-- Of these keys, those that were given up: a dead letter is there and no job. Where the queue is too long to tell, the letter counts.
select key, dead from catchword.standing($1, $2) where dead is not null
