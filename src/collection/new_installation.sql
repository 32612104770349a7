select catchword.new_installation()
