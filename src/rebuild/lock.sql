select pg_try_advisory_lock(hashtextextended('catchword.rebuild ' || $1, 0))
