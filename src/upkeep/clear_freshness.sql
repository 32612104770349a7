-- The longest window that anything judges is six hours; two days are for people who ask afterwards.
delete from catchword.freshness where minute < now() - interval '2 days'
