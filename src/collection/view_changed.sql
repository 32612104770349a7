select filled_view is distinct from catchword.view_digest(view) from catchword.collection where name = $1
