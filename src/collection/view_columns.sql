select a.attname::text as name, format_type(a.atttypid, null) as type
  from pg_catalog.pg_attribute a
 where a.attrelid = catchword.named($1) and a.attnum > 0 and not a.attisdropped
