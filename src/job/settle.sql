-- Only the claimed ids: a job added meanwhile survives. Dead letters of a key that is in step now have nothing left to say.
with settled as (
  delete from catchword.job where id = any($1)
  returning collection, key
)
delete from catchword.dead_job using settled
 where dead_job.collection = settled.collection and dead_job.key = settled.key
