-- Burying by hand: for an operator who knows which document does the harm and will not wait until it is found.

create function catchword.bury(p_collection text, p_key text, p_why text default 'buried by hand', p_who text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  buried bigint;
begin
  with moved as (
    delete from catchword.job
     where name = 'index' and collection = p_collection and key = p_key
    returning id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, traceparent, cursor
  ),
  replaced as (
    delete from catchword.dead_job d using moved m
     where d.key = m.key and d.collection = m.collection and d.name = m.name
  ),
  kept as (
    insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, traceparent, cursor, reason)
    select id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, left(p_why, 300), traceparent, cursor, 'by_hand'
      from moved order by id limit 1
  )
  select count(*) into buried from moved;
  if buried > 0 then
    insert into catchword.journal (who, what, collection, detail, count)
    values (catchword.who(p_who), 'bury', p_collection, format('%s: %s', p_key, p_why), buried);
  end if;
  return buried;
end $$;
comment on function catchword.bury is 'moves the jobs of one key to the dead letters, as one letter; how many jobs';

revoke execute on all functions in schema catchword from public;
