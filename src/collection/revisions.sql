select v.revision as in_view, t.{revision} as in_row
  from {view} v join only {table} t on t.{key} = v.key
 where v.key = $1::text::{key_type}
