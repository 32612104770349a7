select catchword.note_moved($1)
