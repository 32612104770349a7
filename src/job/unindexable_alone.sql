-- Does each dead letter tell of a document that no index can have, whatever its mapping?
select not exists (select from catchword.dead_job where collection = $1 and reason not in ('bad_key', 'too_large', 'unbuildable'))
