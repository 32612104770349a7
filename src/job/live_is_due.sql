select exists (select from catchword.job where collection = any($1) and priority <= catchword.priority_live() and name = 'index' and scheduled_at <= now())
