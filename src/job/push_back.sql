-- A refusal waits 1, 2, 4, … minutes, at most an hour, each a quarter more or less. What was mended is due at once.
update catchword.job
   set attempts = attempts + 1,
       last_error = charged.error,
       scheduled_at = case when charged.at_once then scheduled_at
                           else now() + least(interval '1 minute' * power(2, attempts), interval '1 hour') * (0.75 + random() / 2) end
  from unnest($1::bigint[], $2::text[], $3::boolean[]) as charged (id, error, at_once)
 where job.id = charged.id
