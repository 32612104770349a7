select fed, scheduled, next_seconds, limited from catchword.feed_reindexes($1, $2)
