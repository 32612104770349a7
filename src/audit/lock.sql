select pg_try_advisory_lock(hashtextextended('catchword.audit.' || $1::text, 0))
