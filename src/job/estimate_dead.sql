-- planned and not run: what the planner knows from statistics
explain (format json) select from catchword.dead_job where collection = $1
