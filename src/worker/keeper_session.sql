-- The session of the keeper (src/worker/keeper.rs). The server ends it if nothing is asked on it for five seconds, and its lock with it. The
-- question walks the index however little the planner knows, by one plan that is kept.
select set_config('idle_session_timeout', '5s', false),
       set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_bitmapscan', 'off', false),
       set_config('enable_sort', 'off', false)
