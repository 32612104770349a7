-- A client that hears no answer cannot know whether its annotation was saved. It sends it again under the same key, and gets the one that
-- was saved. The key is kept in the transaction that saves the annotation: both are there, or neither.
create table idempotency_key (
  userid        text        not null,
  key           text        not null,
  request       bytea       not null,
  annotation_id uuid        not null,
  created       timestamptz not null default now(),

  -- of each user: two who choose the same key do not meet
  primary key (userid, key),
  constraint idempotency_key_length check (octet_length(userid) between 1 and 512 and octet_length(key) between 1 and 255)
);

comment on table  idempotency_key               is 'keys under which annotations were saved, for a day';
comment on column idempotency_key.userid        is 'who saved it';
comment on column idempotency_key.key           is 'what the client called the request';
comment on column idempotency_key.request       is 'a digest of what was asked for: the same key with another annotation is a mistake';
comment on column idempotency_key.annotation_id is 'what was saved; no reference, because it may be purged earlier';

-- the oldest are forgotten in passing
create index idempotency_key_created on idempotency_key (created);
