select id, collection, what, tag, state, rewrite, expected, scheduled, all_scheduled, open, settled, dead, taken_off, rate, per_second, seconds_left, started_at, started_by, ended_at, trouble
  from catchword.reindexes($1, $2, $3)
