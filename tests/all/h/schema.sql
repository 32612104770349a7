-- A schema of our own with every shape that Hypothesis' has: replies in the same table, by the first element of an array; a user that no
-- column names; a document with a column that changes all the time; enums, arrays, json; a soft delete before the purge; ids in URL-safe base64.
create schema h;
create type h.moderation as enum ('pending', 'approved', 'denied', 'spam');

create table h.page (
  id bigint generated always as identity primary key,
  title text,
  web_uri text,
  updated timestamptz not null default now()
);
create table h.member (
  id bigint generated always as identity primary key,
  username text not null,
  authority text not null,
  nipsa boolean not null default false,
  last_login timestamptz,
  unique (username, authority)
);
create table h.note (
  id uuid primary key default gen_random_uuid(),
  userid text not null,
  groupid text not null default '__world__',
  text text not null default '',
  tags text[] not null default '{}',
  shared boolean not null default true,
  target jsonb not null default '[]',
  "references" uuid[] not null default '{}',
  page_id bigint not null references h.page,
  moderation h.moderation not null default 'pending',
  deleted boolean not null default false,
  created timestamptz not null default now(),
  updated timestamptz not null default now(),
  catchword_revision bigint
);
comment on column h.note.catchword_revision is 'catchword: revision';
create index on h.note (userid);
create index on h.note (page_id);
create index on h.note (("references"[1])) where not deleted;

create function h.short_id(id uuid) returns text language sql immutable
  return translate(rtrim(encode(uuid_send(id), 'base64'), '='), '+/', '-_');

create view h.note_document as
select n.id as key, h.short_id(n.id) as id, n.catchword_revision as revision, json_build_object(
         'user', n.userid, 'group', n.groupid, 'text', n.text, 'tags', n.tags, 'shared', n.shared, 'target', n.target,
         'references', n."references", 'created', n.created, 'updated', n.updated,
         'thread_ids', (select coalesce(json_agg(h.short_id(r.id) order by r.id), '[]') from h.note r where r."references"[1] = n.id and not r.deleted),
         'page', (select json_build_object('title', p.title, 'web_uri', p.web_uri) from h.page p where p.id = n.page_id),
         'nipsa', coalesce((select m.nipsa from h.member m where 'acct:' || m.username || '@' || m.authority = n.userid), false),
         'hidden', n.moderation in ('denied', 'spam')) as body
  from h.note n
 where not n.deleted;
