-- One document tells of the shard that it is in. An index with several has a sentinel in each of them, all under one number.
alter table catchword.sentinel add column documents integer not null default 1 constraint sentinel_documents_are_some check (documents > 0);
comment on column catchword.sentinel.documents is 'how many documents were acknowledged under this version, so that each shard has one';
