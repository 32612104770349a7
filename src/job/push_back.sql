-- How long a refusal waits is in `catchword.retry_at`. What was fixed is due at once.
update catchword.job
   set attempts = attempts + 1,
       last_error = charged.error,
       priority = case when charged.at_once then priority else greatest(priority, catchword.priority_live()) end,
       scheduled_at = case when charged.at_once then scheduled_at else catchword.retry_at(attempts) end
  from unnest($1::bigint[], $2::text[], $3::boolean[]) as charged (id, error, at_once)
 where job.id = charged.id
