select distinct collection from catchword.reindex where ended_at is null and paused_at is null and collection = any($1)
