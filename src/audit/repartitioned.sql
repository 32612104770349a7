-- Whoever notices it asks for an audit with this reason.
select exists (select from catchword.audit where collection = $1 and reason = 'partitions' and asked_at > now() - interval '1 day')
