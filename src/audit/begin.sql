insert into catchword.audit (collection, targets, whole, repair, content, since, sample, reason, base)
values ($1, $2, $3, $4, $5, $6, $7, $8, catchword.bulk_base($1, catchword.priority_part()))
returning id, collection, targets, repair, content, content_share, since, sample, stage, target, cursor, point_in_time, looked, counts, stage_counts, examples, scheduled, base, asked_at, finished_at
