select id, collection, targets, repair, content, content_share, since, sample, stage, target, cursor, point_in_time, looked, counts, stage_counts, examples, scheduled, base, asked_at, finished_at,
       reason, asked_by,
       case when finished_at is not null then 'finished'
            when stopped_at is not null then 'stopped'
            when seen_at < now() - interval '10 minutes' and looked > 0 then 'resting'
            -- the command that began it is gone; --resume goes on with it
            when reason = 'operator' and looked = 0 and seen_at < now() - interval '1 minute' then 'stopped'
            when looked > 0 then 'running'
            else 'asked' end as state
  from catchword.audit
 where collection = any($1) and ($2::bigint is null or id = $2)
 order by id desc
 limit $3
