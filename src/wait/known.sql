-- a key as it was asked for, as Postgres writes it, the revision that it has now, and the reason of its dead letter
select asked, key, revision, dead from catchword.known($1, $2)
