-- A text that is already there is not written again, so that a repeated run schedules nothing.
update annotation
set text = made.text, tags = string_to_array(made.tags, ','), updated = made.updated
from unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[]) as made (id, updated, text, tags)
where annotation.id = made.id
  and not annotation.deleted
  and annotation.updated < made.updated
