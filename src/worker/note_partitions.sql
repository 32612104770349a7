select catchword.note_partitions($1)
