-- A job that waits is not quick any more: it must not be read again and again by whoever asks for those.
update catchword.job
   set priority = greatest(priority, catchword.priority_live()),
       scheduled_at = now() + make_interval(secs => $2::float8 + random() * ($3::float8 - $2::float8))
 where id = any($1)
