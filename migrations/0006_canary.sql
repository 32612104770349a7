-- The canary: one row of catchword's own that workers change each minute and watch until search shows it. It is attached like any
-- table, so it goes the whole way, and there is a signal of freshness where nobody writes.

create table catchword.canary (
  id                 integer primary key default 1 constraint canary_is_one check (id = 1),
  beat               bigint not null default 0,
  changed_at         timestamptz not null default '-infinity',
  catchword_revision bigint
);
comment on table  catchword.canary is 'one row that workers change each minute, to see it through to search';
comment on column catchword.canary.id is 'holds the table to one row';
comment on column catchword.canary.beat is 'how often it was changed';
comment on column catchword.canary.changed_at is 'when it was last changed';
comment on column catchword.canary.catchword_revision is 'catchword: revision';
insert into catchword.canary default values;

create view catchword.canary_document as
select id as key, catchword_revision as revision, json_build_object('beat', beat) as body from catchword.canary;
comment on view catchword.canary_document is 'the canary''s document';
comment on column catchword.canary_document.key is 'always 1';
comment on column catchword.canary_document.revision is 'of the row';
comment on column catchword.canary_document.body is 'the beat';

-- However many workers there are, one of them changes it each minute: the others wait for its lock and find it changed.
create function catchword.stir_canary() returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  stirred bigint;
begin
  perform set_config('catchword.tag', 'canary', true), set_config('catchword.delay', '0', true);
  update catchword.canary set beat = beat + 1, changed_at = now()
   where changed_at < now() - interval '55 seconds'
  returning catchword_revision into stirred;
  return stirred;
end $$;
comment on function catchword.stir_canary is 'changes the canary and returns its revision; null: somebody did within the minute';

revoke execute on all functions in schema catchword from public;
