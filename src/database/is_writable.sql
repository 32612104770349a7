-- A standby is always read-only, and so is a server that was made so. Names are written out: no path is pinned yet.
select pg_catalog.current_setting('transaction_read_only') operator(pg_catalog.=) 'off'
