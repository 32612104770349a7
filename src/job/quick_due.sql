-- Which of the collections $1 have a quick job that is due, was scheduled within the last $2 seconds and stands behind the collection's mark in $3
-- and $4; and how long that took, in seconds. Asked many times a second: what waits stands elsewhere in the index, and what was settled long ago lies
-- behind the bound. One search of the index for each collection: as a plain exists it might become a join that reads the index from one end to the
-- other.
select array(select c.name
               from unnest($1::text[], $3::timestamptz[], $4::bigint[]) as c (name, enqueued_at, id)
              where (select true from catchword.job j
                      where j.collection = c.name and j.priority = catchword.priority_quick()
                        and j.enqueued_at > now() - make_interval(secs => $2::float8) and j.scheduled_at <= now()
                        and (j.enqueued_at, j.id) > (c.enqueued_at, c.id)
                      limit 1)
                and not exists (select from catchword.pause p where p.collection = c.name)) as due,
       extract(epoch from clock_timestamp() - statement_timestamp())::float8 as seconds
