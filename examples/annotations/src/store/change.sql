-- A null is a field that was not named: none of these columns can be set to null by a client.
update annotation
set groupid               = coalesce($2::text, groupid),
    text                  = coalesce($3::text, text),
    tags                  = coalesce($4::text[], tags),
    target_uri            = coalesce($5::text, target_uri),
    target_uri_normalized = coalesce($6::text, target_uri_normalized),
    shared                = coalesce($7::boolean, shared),
    document_id           = coalesce($8::bigint, document_id),
    updated               = now()
where id = $1
  and not deleted
