-- How many jobs of a bulk are left, up to $3; and how far the first of them stands behind $4, which is that of the bulk's first job:
-- they are a microsecond apart, so that is about how many are through.
select (select count(*) from (select from catchword.job where collection = $1 and priority = catchword.priority_whole() and tag = $2 limit $3) as open) as left,
       coalesce((select extract(epoch from enqueued_at - $4::timestamptz) * 1000000
                   from catchword.job where collection = $1 and priority = catchword.priority_whole() and tag = $2
                  order by enqueued_at, id limit 1), 0)::bigint as position
