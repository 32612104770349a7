select extract(epoch from now() - changed_at)::float8 from catchword.canary where not exists (select from catchword.pause where collection = $1)
