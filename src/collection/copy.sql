-- `elsewhere`: it was last seen on another server, or at least on another database of one that tells nothing of itself.
select catchword.copy_of() as original,
       coalesce(i.system_identifier <> (catchword.which_server()).system_identifier, false) as elsewhere
  from catchword.installation i
