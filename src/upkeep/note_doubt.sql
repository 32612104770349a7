select catchword.note_doubt($1, $2, $3, $4)
