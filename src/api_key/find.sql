select id, name, digest, role, collections, rate, state
  from catchword.find_key($1)
