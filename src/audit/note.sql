update catchword.audit
   set stage = $2, target = $3, cursor = $4, point_in_time = $5, looked = $6, counts = $7, stage_counts = $8, examples = $9, scheduled = $10, seen_at = now()
 where id = $1 and stopped_at is null
