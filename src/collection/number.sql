update only {table} set {revision} = 4 where {key} = $1::text::{key_type}
