-- Inside a transaction the two differ. Asked by the simple protocol: a prepared statement's execution is a later statement than its
-- binding, which begins the transaction, so they would always differ.
select now() = statement_timestamp()
