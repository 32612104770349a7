-- Dead letters that are news, and those that say "ahead". Bounded, like the census.
select (select count(*) from (select from catchword.dead_job where collection = $1 and died_at > now() - make_interval(secs => $2) limit $3) as lately) as lately,
       (select count(*) from (select from catchword.dead_job where collection = $1 and reason = 'ahead' limit $3) as ahead) as ahead
