-- How fresh search was: the changes that the loop saw in Elasticsearch, by the minute, and how many of them later than the objective says.
-- `catchword check` judges burn rates from it without Prometheus. Counted by the statement that settles, so it costs no round trip, and
-- each session has a row of its own, so no batch waits for another's count.

create table catchword.freshness (
  minute     timestamptz not null,
  collection text not null,
  session    integer not null,
  changes    bigint not null constraint freshness_counts_something check (changes > 0),
  slow       bigint not null constraint freshness_slow_are_some check (slow between 0 and changes),
  primary key (minute, collection, session)
);
comment on table  catchword.freshness is 'changes seen in Elasticsearch, by the minute; kept for two days';
comment on column catchword.freshness.minute is 'the minute in which their jobs were settled';
comment on column catchword.freshness.collection is 'whose changes';
comment on column catchword.freshness.session is 'the process id of the session that settled them';
comment on column catchword.freshness.changes is 'live writes whose job was settled by a look; bulks do not count';
comment on column catchword.freshness.slow is 'those among them that were seen over 300 seconds after the write';
