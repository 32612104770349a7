-- Is a job of an audit open? They stand beside the first jobs of other parts, so some thousand of a long bulk are looked at and no more.
select exists (select from (select tag from catchword.job where collection = $1 and priority = catchword.priority_part() order by enqueued_at, id limit 10000) as first
                where first.tag = 'audit')
