with paused as (
  insert into catchword.pause (collection, by, reason) values ($1, $2, $3)
  on conflict (collection) do nothing
  returning collection
),
noted as (
  insert into catchword.journal (who, what, collection, detail)
  select $2, 'pause', collection, $3 from paused
)
select exists (select from paused)
