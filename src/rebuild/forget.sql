select catchword.rebuild_forget($1)
