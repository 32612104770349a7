-- Collections that have jobs and no configured worker: walked by the index, one step per collection.
with recursive named as (
  (select collection from catchword.job order by collection limit 1)
  union all
  select (select job.collection from catchword.job where job.collection > named.collection order by job.collection limit 1)
    from named where named.collection is not null
)
select collection from named where collection is not null and collection <> all($1) order by 1
