-- the columns that the configuration names and the table lacks
select wanted.name
  from unnest($2::text[]) as wanted (name)
 where not exists (select from pg_catalog.pg_attribute a where a.attrelid = catchword.named($1) and a.attname = wanted.name and a.attnum > 0 and not a.attisdropped)
 order by 1
