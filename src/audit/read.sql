select id, collection, targets, repair, content, content_share, since, sample, stage, target, cursor, point_in_time, looked, counts, stage_counts, examples, scheduled, base, asked_at, finished_at, stopped_at
  from catchword.audit
 where id = $1
