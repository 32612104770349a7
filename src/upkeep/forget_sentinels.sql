-- of indices that are no longer written to
delete from catchword.sentinel where collection = $1 and target <> all($2)
