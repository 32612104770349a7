select set_config('plan_cache_mode', 'auto', true), set_config('enable_sort', 'on', true)
