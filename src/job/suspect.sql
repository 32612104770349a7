update catchword.job
   set unanswered = suspected.among
  from unnest($1::bigint[], $2::integer[]) as suspected (id, among)
 where job.id = suspected.id
