update catchword.job
   set scheduled_at = now() + make_interval(secs => $2 + random() * ($3 - $2))
 where id = any($1)
