select exists (select from catchword.job where collection = any($1) and priority = 1 and name = 'index' and scheduled_at <= now())
