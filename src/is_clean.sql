-- inside a transaction the two differ
select now() = statement_timestamp()
