-- The annotation service's own tables, and the view that says what a document of the index is.
--
-- Nothing here depends on catchword: this migration runs on a plain database, before or after
-- `catchword migrate`. The service owns tables and view; catchword only adds its triggers to them.

-- A page that people annotate. It is a table of its own, so that a title is written once and not
-- on each annotation; its changes reach the index because catchword.toml names it under `touches`.
create table document (
  id      bigint generated always as identity primary key,
  title   text,
  web_uri text not null,

  -- one row per page: writers find it by its address, and two of them at once must meet here
  constraint document_web_uri_unique unique (web_uri),
  -- a btree entry holds 2,704 bytes; a longer address would fail the write with a stranger's error
  constraint document_web_uri_length check (octet_length(web_uri) between 1 and 2048)
);

comment on table  document         is 'a page that annotations refer to';
comment on column document.title   is 'null until somebody has told it';
comment on column document.web_uri is 'the address in normal form: http and https, fragments and trailing slashes meet';

create table annotation (
  id                    uuid        primary key default gen_random_uuid(),
  created               timestamptz not null default now(),
  updated               timestamptz not null default now(),
  userid                text        not null,
  groupid               text        not null default '__world__',
  text                  text        not null default '',
  tags                  text[]      not null default '{}',
  target_uri            text        not null,
  target_uri_normalized text        not null,
  "references"          uuid[]      not null default '{}',
  shared                boolean     not null default true,
  document_id           bigint      references document (id),
  deleted               boolean     not null default false,
  catchword_revision    bigint,

  -- Elasticsearch reads years of four digits and no 'infinity': such a row could never be indexed
  constraint annotation_times_indexable
    check (least(created, updated) >= '0001-01-01 00:00:00+00' and greatest(created, updated) < '10000-01-01 00:00:00+00'),
  -- these are keywords in the index and entries of a btree here; both have a limit, so it is said here
  constraint annotation_names_length
    check (octet_length(userid) between 1 and 512 and octet_length(groupid) between 1 and 512),
  constraint annotation_uri_length
    check (octet_length(target_uri) between 1 and 2048 and octet_length(target_uri_normalized) between 1 and 2048)
);

comment on table  annotation                       is 'what somebody wrote on a page; the row is the truth, the index its copy';
comment on column annotation.created               is 'when it was first saved';
comment on column annotation.updated               is 'when its writer last changed it; search shows the newest of these first';
comment on column annotation.userid                is 'who wrote it, for example acct:mina@example.org';
comment on column annotation.groupid               is 'whom it is for; __world__ is everybody';
comment on column annotation.text                  is 'empty for a mere highlight';
comment on column annotation.target_uri            is 'the address as the writer gave it';
comment on column annotation.target_uri_normalized is 'the address in normal form, by which search finds it';
comment on column annotation."references"          is 'the annotations it replies to, the thread''s first one first';
comment on column annotation.shared                is 'false: meant for the writer alone';
comment on column annotation.deleted               is 'a soft delete: the view stops returning the row, so it leaves the index';
-- catchword adopts a column of this name only if its comment begins like this: so a migration says
-- that the column is catchword's, and the view below can name it before catchword has ever run
comment on column annotation.catchword_revision    is 'catchword: the revision of this row';

-- `catchword reindex --user X` walks a scope in the order of the key: with the id as second column
-- each chunk is one short range of the index, instead of a sort of everything the user wrote.
create index annotation_userid      on annotation (userid, id);
create index annotation_groupid     on annotation (groupid, id);
create index annotation_document_id on annotation (document_id, id);
-- `catchword reindex --between A B`
create index annotation_updated     on annotation (updated);
-- the replies of a thread, which the view shows with its first annotation
create index annotation_thread      on annotation (("references"[1])) where not deleted;
-- purging a page
create index annotation_target_uri_normalized on annotation (target_uri_normalized);

-- The document of the index, and the JSON of the API: one definition of both.
--
-- `key` is the bare column, so that a look-up by keys uses the primary key. The page comes in by a
-- scalar subselect: it costs one index look-up per row wanted; a join against something grouped
-- would read the whole table for each batch. Times are spelled out in UTC because a timestamptz
-- cast to JSON follows the session's time zone, and one revision must be one document.
create view annotation_document (key, revision, body) as
select
  annotation.id,
  annotation.catchword_revision,
  json_build_object(
    'id',                    annotation.id,
    'created',               to_char(annotation.created at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'updated',               to_char(annotation.updated at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'userid',                annotation.userid,
    'groupid',               annotation.groupid,
    'text',                  annotation.text,
    'tags',                  annotation.tags,
    'target_uri',            annotation.target_uri,
    'target_uri_normalized', annotation.target_uri_normalized,
    'references',            annotation."references",
    'thread_ids', (
      select coalesce(json_agg(reply.id order by reply.id), '[]')
      from annotation as reply
      where reply."references"[1] = annotation.id and not reply.deleted
    ),
    'shared',                annotation.shared,
    'document_id',           annotation.document_id,
    'document', (
      select json_build_object('title', document.title, 'web_uri', document.web_uri)
      from document
      where document.id = annotation.document_id
    )
  )
from annotation
where not annotation.deleted;

comment on view annotation_document is 'what Elasticsearch must hold: what this view does not return must not be in the index';
