-- Nothing is inserted if the key is there; an insert of the same key that is under way is waited for. A few that are older than a day are
-- forgotten in passing.
with forgotten as (
  delete from idempotency_key
  where (userid, key) in (
    select userid, key
    from idempotency_key
    where created < now() - interval '1 day'
      and (userid, key) <> ($1, $2)
    order by created
    limit 10
    for update skip locked
  )
)
insert into idempotency_key (userid, key, request, annotation_id)
values ($1, $2, sha256(convert_to($3, 'UTF8')), $4)
on conflict do nothing
