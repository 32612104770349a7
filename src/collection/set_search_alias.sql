update catchword.collection set search_alias = $2 where name = $1 and search_alias is distinct from $2
