select catchword.note_broken($1, $2)
