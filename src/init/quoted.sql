-- Names that the caller chose, as SQL writes them: a view, perhaps with its schema, and a column.
select (select string_agg(quote_ident(part.name), '.' order by part.nth) from unnest(parse_ident($1)) with ordinality as part (name, nth)) as view,
       quote_ident($2) as revision
