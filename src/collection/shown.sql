select v.key::text as key from {view} v where v.key = any($1::{key_array}) limit 1
