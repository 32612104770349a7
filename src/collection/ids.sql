-- the ids that the view has for these keys
select {v_key} as key, {document_id} as id from {view} v join catchword.collection c on c.name = $1 where {v_at $2}
