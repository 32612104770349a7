with resumed as (
  delete from catchword.pause where collection = $1
  returning collection, since
),
noted as (
  insert into catchword.journal (who, what, collection, detail)
  select $2, 'resume', collection, format('paused since %s', since) from resumed
)
select exists (select from resumed)
