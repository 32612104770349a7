select catchword.note_server()
