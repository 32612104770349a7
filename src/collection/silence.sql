alter table {table} disable trigger user
