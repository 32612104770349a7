select catchword.stir_canary()
