select search_alias, targets from catchword.collection where name = $1 and search_alias is not null
