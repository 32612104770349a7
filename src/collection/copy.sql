-- `elsewhere`: it was last seen on another server.
select catchword.copy_of() as original,
       coalesce(i.system_identifier <> (select system_identifier from pg_control_system()), false) as elsewhere
  from catchword.installation i
