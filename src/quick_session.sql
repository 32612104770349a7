select set_config('statement_timeout', '250ms', false)
