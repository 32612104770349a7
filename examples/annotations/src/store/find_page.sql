select id
from document
where web_uri = $1
