select document.key::text, greatest(coalesce(document.revision, 0), collection.floor)
from annotation_document as document
cross join catchword.collection
where collection.name = 'annotation'
