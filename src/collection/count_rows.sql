-- How many of these keys have a row: from the index alone, at half of what it costs to say which.
select count(*) from only {table} t where t.{key} = any($1::{key_array})
