-- A week, to compare a day with the same day of the week before, and a day more to look at it.
delete from catchword.history where minute < now() - interval '8 days'
