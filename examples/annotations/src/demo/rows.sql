select document.key::text, greatest(document.revision, collection.floor, record.revision + record.revision % 2)
from annotation_document as document
left join lateral (select max(revision) as revision from catchword.record where collection = 'annotation' and key = document.key::text) as record on true
cross join catchword.collection
where collection.name = 'annotation'
