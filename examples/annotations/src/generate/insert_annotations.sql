-- Lists come joined by commas: unnest would flatten an array of arrays.
insert into annotation (
  id, created, updated, userid, groupid, text, tags,
  target_uri, target_uri_normalized, "references", shared, document_id
)
select
  made.id, made.created, made.created, made.userid, made.groupid, made.text, string_to_array(made.tags, ','),
  made.target_uri, made.target_uri_normalized, string_to_array(made.refs, ',')::uuid[], made.shared, document.id
from unnest(
  $1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[],
  $7::text[], $8::text[], $9::text[], $10::boolean[]
) with ordinality as made (
  id, created, userid, groupid, text, tags,
  target_uri, target_uri_normalized, refs, shared, place
)
left join document on document.web_uri = made.target_uri_normalized
order by made.place
on conflict (id) do nothing
