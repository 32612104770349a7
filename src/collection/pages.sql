select pg_relation_size(source) / current_setting('block_size')::bigint from catchword.collection where name = $1
