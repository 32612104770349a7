select a.attname::text as name, format_type(a.atttypid, null) as type, catchword.key_type(a.atttypid) as key_type
  from pg_catalog.pg_attribute a
 where a.attrelid = catchword.named($1) and a.attnum > 0 and not a.attisdropped
