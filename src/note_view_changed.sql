select catchword.note_view_changed($1)
