-- Inside a transaction the two differ. Asked by the simple protocol: a prepared statement's execution is a later statement than its
-- binding, which begins the transaction, so they would always differ. Names are written out, for the sessions whose path is the caller's.
select pg_catalog.now() operator(pg_catalog.=) pg_catalog.statement_timestamp()
