update annotation
set deleted = true, updated = now()
where id = $1
  and not deleted
