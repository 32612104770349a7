-- only the first time: later the list is a rebuild's
update catchword.collection set targets = array[$2::text] where name = $1 and targets = '{}'
