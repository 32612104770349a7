-- keys of dead letters that are older than $2 seconds, some of them by chance: those that stay must not stand before the others
select key from (
  select distinct key from catchword.dead_job where collection = $1 and name = 'index' and died_at < now() - make_interval(secs => $2)
) as old
 order by random()
 limit $3
