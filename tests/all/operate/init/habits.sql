-- Tables as other people make them: names that need quotes, another schema, keys of several columns, every type, relations of every kind.
create schema "My Shop";
create type "My Shop"."Mood" as enum ('calm', 'it''s loud');
create domain "My Shop".short_code as varchar(12);

create table "My Shop"."Person" (
  "Id"             integer generated always as identity primary key,
  "displayName"    text,
  email            text,
  "passwordHash"   text,
  api_key          text,
  visits           bigint not null default 0,
  "updatedAt"      timestamptz not null default now()
);

-- two parents of one table, a parent and a column of the same name, itself, everything that a column can be
create table "My Shop"."Order" (
  "orderId"        uuid primary key default gen_random_uuid(),
  author_id        integer not null references "My Shop"."Person",
  author           text,
  "editorId"       integer references "My Shop"."Person",
  "parent.order"   uuid references "My Shop"."Order",
  "select"         text,
  "it's ""so"""    text,
  _id              text,
  mood             "My Shop"."Mood" not null default 'calm',
  moods            "My Shop"."Mood"[],
  code             "My Shop".short_code,
  codes            "My Shop".short_code[],
  padded           char(8),
  price            numeric(10, 2),
  weight           numeric,
  ratio            double precision,
  place            inet,
  places           inet[],
  took             interval,
  period           tstzrange,
  bits             bit(4),
  meta             jsonb,
  old_meta         json,
  picture          bytea,
  words            tsvector,
  at               point,
  "rawHash"        text,
  doubled          text generated always as ("rawHash" || "rawHash") stored,
  picture_size     integer generated always as (octet_length(picture)) stored,
  "deletedAt"      timestamptz,
  created          timestamptz not null default now(),
  unique ("orderId", created)
);
create index on "My Shop"."Order" (author_id);
create index on "My Shop"."Order" ("editorId");
create index on "My Shop"."Order" (created);
create index on "My Shop"."Order" ("parent.order");

-- children with an index, children without one, at most one child, a log
create table "My Shop"."orderLine" (
  id         bigint generated always as identity primary key,
  "orderId"  uuid not null references "My Shop"."Order" on delete cascade,
  product    varchar(200) not null,
  number     integer not null default 1,
  is_removed boolean,
  updated_at timestamptz not null default now()
);
create index on "My Shop"."orderLine" ("orderId");
create table "My Shop".stray (id bigint primary key, "orderId" uuid references "My Shop"."Order", note text);
create table "My Shop"."orderNote" (id bigint primary key, "orderId" uuid unique references "My Shop"."Order", note text);
create table "My Shop"."orderStep" (id bigint primary key, "orderId" uuid references "My Shop"."Order", step text) partition by hash (id);
create table "My Shop"."orderStep 0" partition of "My Shop"."orderStep" for values with (modulus 2, remainder 0);
create table "My Shop"."orderStep 1" partition of "My Shop"."orderStep" for values with (modulus 2, remainder 1);
create index on "My Shop"."orderStep" ("orderId");
create table "My Shop".order_log (id bigint primary key, "orderId" uuid references "My Shop"."Order", note text);
create index on "My Shop".order_log ("orderId");

-- many to many, with a primary key and without
create table "My Shop".tag (id smallint primary key, name text not null);
create table "My Shop"."orderTag" (
  "orderId" uuid references "My Shop"."Order" on delete cascade, tag_id smallint references "My Shop".tag,
  primary key ("orderId", tag_id)
);
create table "My Shop".shelf (id smallint primary key, label text not null);
create table "My Shop"."Order_shelf" (
  "orderId" uuid references "My Shop"."Order" on delete cascade, shelf_id smallint references "My Shop".shelf
);
create index on "My Shop"."Order_shelf" ("orderId");
create index on "My Shop"."Order_shelf" (shelf_id);

-- tenants: every key has two columns
create table room (tenant_id integer, id bigint, title text not null, primary key (tenant_id, id));
create table booking (
  tenant_id integer, id bigint, room_id bigint, guest_token text, "until" date, primary key (tenant_id, id),
  foreign key (tenant_id, room_id) references room
);
create index on booking (room_id);
create table booking_item (
  tenant_id integer, id bigint, booking_id bigint, what text, primary key (tenant_id, id),
  foreign key (tenant_id, booking_id) references booking on delete cascade
);
create index on booking_item (booking_id, tenant_id);

-- in parts
create table sensor (id integer primary key, label text not null);
create table reading (
  id bigint, day date, sensor_id integer references sensor, value numeric(8, 2), primary key (id, day)
) partition by range (day);
create table reading_2026 partition of reading for values from ('2026-01-01') to ('2027-01-01');
create table reading_later partition of reading default;
create index on reading (sensor_id);

-- wider than a function of Postgres takes
create table wide (id bigint primary key);
do $$ begin for i in 1..210 loop execute format('alter table wide add column column_%s text', i); end loop; end $$;

insert into "My Shop"."Person" ("displayName", email, "passwordHash", api_key)
values ('Mina', 'mina@example.org', 'hunter2', 'k'), ('Otto', 'otto@example.org', 'hunter3', 'l');
insert into "My Shop"."Order" ("orderId", author_id, author, "editorId", "select", "it's ""so""", _id, moods, code, codes, padded, price, weight,
                               ratio, place, places, took, period, bits, meta, old_meta, picture, words, at, "rawHash")
values ('00000000-0000-4000-8000-000000000001', 1, 'by hand', 2, 'words of it', 'quoted', 'x', '{calm,it''s loud}', 'A1', '{A1,B2}', 'ab', 9.99,
        12345678901234567890.5, 'NaN', '10.0.0.1/24', '{10.0.0.1,::1}', '1 day', '[2026-01-01,infinity)', '1010', '["any", {"json": null}]',
        '{"a": 1, "a": 2}', '\x00', 'words', '(1,2)', 'ab');
insert into "My Shop"."Order" ("orderId", author_id, "parent.order", created, meta)
values ('00000000-0000-4000-8000-000000000002', 2, '00000000-0000-4000-8000-000000000001', 'infinity', '7');
insert into "My Shop"."Order" ("orderId", author_id, "deletedAt") values ('00000000-0000-4000-8000-000000000003', 1, now());
insert into "My Shop"."orderLine" ("orderId", product, is_removed)
values ('00000000-0000-4000-8000-000000000001', 'tea', null), ('00000000-0000-4000-8000-000000000001', 'cup', false),
       ('00000000-0000-4000-8000-000000000001', 'pot', true);
insert into "My Shop"."orderNote" values (1, '00000000-0000-4000-8000-000000000001', 'fragile');
insert into "My Shop"."orderStep" values (1, '00000000-0000-4000-8000-000000000001', 'packed');
insert into "My Shop".tag values (1, 'blue'), (2, 'red');
insert into "My Shop"."orderTag" select '00000000-0000-4000-8000-000000000001', id from "My Shop".tag;
insert into "My Shop".shelf values (1, 'top');
insert into "My Shop"."Order_shelf" values ('00000000-0000-4000-8000-000000000001', 1);
insert into room values (7, 1, 'blue room'), (8, 1, 'red room');
insert into booking values (7, 1, 1, 'secret', '2026-12-24'), (8, 1, 1, 'secret', 'infinity'), (8, 2, null, null, null);
insert into booking_item values (7, 1, 1, 'breakfast'), (8, 1, 1, 'dog');
insert into sensor values (1, 'roof');
insert into reading values (1, '2026-06-01', 1, 20.5), (1, '2027-06-01', 1, 21.5);
insert into wide (id, column_1, column_210) values (1, 'first', 'last');
