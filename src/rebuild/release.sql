select catchword.rebuild_release($1)
