select annotation_id, request = sha256(convert_to($3, 'UTF8')) as same
from idempotency_key
where userid = $1
  and key = $2
