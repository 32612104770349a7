update annotation
set deleted = true, updated = made.updated
from unnest($1::uuid[], $2::timestamptz[]) as made (id, updated)
where annotation.id = made.id
  and not annotation.deleted
