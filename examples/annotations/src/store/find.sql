select body::text
from annotation_document
where key = $1
