select id, name, role, collections, rate, state, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by
  from catchword.keys()
 order by revoked_at is not null, name, id
