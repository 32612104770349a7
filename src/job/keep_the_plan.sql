-- Just after a million jobs came into a table last analyzed empty, Postgres would sort them all for each of the first claims (or counts)
-- on a connection. The generic plan without a sort walks the index.
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_sort', 'off', true)
