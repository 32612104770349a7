select catchword.take_over()
