select problem from catchword.broken_triggers($1)
union all
-- a name that this session cannot resolve proves nothing: it may have another search_path than the migrator
select format('the configuration says %s, and the collection was attached with %s', said, attached)
  from catchword.collection c,
       lateral (values (format('table = %s', $2::text), c.source::text, to_regclass($2::text) <> c.source),
                       (format('key = %s', $3::text), c.key_column, $3 <> c.key_column),
                       (format('view = %s', $4::text), c.view, to_regclass($4::text) <> to_regclass(c.view))) as named (said, attached, differs)
 where c.name = $1 and differs
