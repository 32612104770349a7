update catchword.job
   set scheduled_at = now() + make_interval(secs => $2::float8 + random() * ($3::float8 - $2::float8))
 where id = any($1)
