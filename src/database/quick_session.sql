-- nothing but views is read here, so the path is theirs
select set_config('statement_timeout', '250ms', false), set_config('search_path', current_setting('catchword.path'), false)
