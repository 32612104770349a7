insert into annotation (
  id, userid, groupid, text, tags, target_uri, target_uri_normalized, "references", shared, document_id
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
