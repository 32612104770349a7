//! What catchword will not work on is refused with a sentence that says what to do, and nothing is left half done.

use catchword::{Catchword, collection, migrate};
use serde_json::json;

use crate::attach::{attach, attached, collection_lines, item};
use crate::common::{Layout, World};

/// A table that cannot be attached: collection and table are called `name`, the view `name_document`.
struct Case {
    name: &'static str,
    sql: &'static str,
    /// More lines of its configuration; they replace table, key or view.
    lines: &'static str,
    says: &'static [&'static str],
}

impl Case {
    fn toml(&self) -> String {
        let mut text = format!("[[collection]]\nname = \"{}\"\nmapping = \"bystander.json\"\n{}\n", self.name, self.lines);
        for (key, usual) in [("table", self.name.to_owned()), ("key", "id".into()), ("view", format!("{}_document", self.name))] {
            if !self.lines.lines().any(|line| line.starts_with(key)) {
                text += &format!("{key} = \"{usual}\"\n");
            }
        }
        // several on one table have a column each
        if self.lines.contains("table = \"named\"") {
            text += &format!("revision = \"{}_revision\"\n", self.name);
        }
        text
    }
}

/// All that attaching could have made or changed.
const MADE: &str = "select md5(string_agg(line, chr(10) order by line)) from (
    select to_jsonb(c)::text as line from catchword.collection c
    union all select to_jsonb(j)::text from catchword.journal j
    union all select to_jsonb(j)::text from catchword.job j
    union all select t.oid || t.tgname from pg_trigger t where not tgisinternal
    union all select p.oid || p.proname from pg_proc p where pronamespace = 'catchword'::regnamespace
    union all select attrelid::regclass || '.' || attname || ' ' || attnum || coalesce(col_description(attrelid, attnum), '')
                from pg_attribute join pg_class c on c.oid = attrelid where c.relnamespace = 'public'::regnamespace) as made";

async fn each_is_refused(cases: &[Case]) {
    let world = World::with(Layout {
        sql: cases.iter().map(|case| format!("{};\n", case.sql)).collect(),
        more: cases.iter().map(Case::toml).collect(),
        migrated: false,
        ..Layout::default()
    })
    .await;
    migrate::apply(&world.pool).await.unwrap();
    let before: String = world.one(MADE).await;
    for case in cases {
        let collections = &world.catchword.config().collections;
        let config = collections.iter().find(|collection| collection.name == case.name).unwrap();
        let said = match collection::attach(world.catchword.pool(), config).await {
            Ok(_) => panic!("{} was attached", case.name),
            Err(error) => error.to_string(),
        };
        for harm in ["disable row level", "add unique", "bypassrls"] {
            assert!(!said.contains(harm), "{}: {said}", case.name);
        }
        for part in case.says {
            assert!(said.contains(part), "{}: {said:?} lacks {part:?}", case.name);
        }
        assert_eq!(world.one::<String>(MADE).await, before, "{} left something behind", case.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_plain_permanent_table_is_refused() {
    each_is_refused(&[
        Case {
            name: "a_partition",
            sql: "create table partitioned (id bigint primary key) partition by range (id); create table part partition of partitioned default",
            lines: "table = \"part\"",
            says: &["part is a partition", "attach the table that it is a partition of: table = \"public.partitioned\""],
        },
        Case {
            name: "ancestor",
            sql: "create table ancestor (id bigint primary key); create table heir (primary key (id)) inherits (ancestor)",
            lines: "",
            says: &["ancestor inherits or is inherited from", "attach a plain table"],
        },
        Case {
            name: "heir",
            sql: "",
            lines: "",
            says: &["heir inherits or is inherited from"],
        },
        Case {
            name: "a_view",
            sql: "create view a_view as select 1::bigint as id",
            lines: "",
            says: &["a_view is not a plain table", "name the table that holds the rows"],
        },
        Case {
            name: "abroad",
            sql: "create foreign data wrapper nobody; create server nowhere foreign data wrapper nobody; create foreign table abroad (id bigint not null) server nowhere",
            lines: "",
            says: &["abroad is not a plain table"],
        },
        Case {
            name: "unlogged",
            sql: "create unlogged table unlogged (id bigint primary key)",
            lines: "",
            says: &["unlogged is temporary or unlogged", "attach a permanent table"],
        },
        Case {
            name: "absent",
            sql: "",
            lines: "",
            says: &["the table absent does not exist", "create it with your own migrations first"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_table_is_refused() {
    let world = attached().await;
    let mut connection = world.pool.acquire().await.unwrap();
    sqlx::query("create temporary table passing (id bigint primary key)").execute(&mut *connection).await.unwrap();
    let error =
        sqlx::query("select catchword.attach('passing', 'passing', '{id}', 'item_document')").execute(&mut *connection).await.unwrap_err();
    let said = catchword::Error::from(error).to_string();
    assert!(said.contains("passing is temporary or unlogged: its rows do not survive a crash; attach a permanent table"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_does_not_name_one_row_is_refused() {
    each_is_refused(&[
        Case {
            name: "keyless",
            sql: "create table keyless (number bigint primary key)",
            lines: "",
            says: &["keyless has no column id", "correct key = "],
        },
        Case {
            name: "timely",
            sql: "create table timely (id timestamptz primary key)",
            lines: "",
            says: &["the key public.timely.id is of type timestamp with time zone", "a key is of type uuid, bigint, integer, smallint, text, varchar"],
        },
        Case {
            name: "tenants",
            sql: "create table tenants (tenant_id bigint, id bigint, primary key (tenant_id, id))",
            lines: "",
            says: &["the key public.tenants.id is unique together with other columns only", "write key = [\"tenant_id\", \"id\"]"],
        },
        Case {
            name: "nullable",
            sql: "create table nullable (id bigint unique)",
            lines: "",
            says: &["the key public.nullable.id may be null", "alter table public.nullable alter column id set not null"],
        },
        Case {
            name: "repeated",
            sql: "create table repeated (id bigint not null, other bigint); create index on repeated (id)",
            lines: "",
            says: &["the key public.repeated.id is not unique", "create unique index concurrently on public.repeated (id)"],
        },
        Case {
            name: "postponed",
            sql: "create table postponed (id bigint not null unique deferrable initially deferred)",
            lines: "",
            says: &["the key public.postponed.id is not unique", "not deferrable"],
        },
        Case {
            name: "partly",
            sql: "create table partly (id bigint not null); create unique index on partly (id) where id > 0",
            lines: "",
            says: &["the key public.partly.id is not unique"],
        },
        Case {
            name: "computed",
            sql: "create table computed (id bigint not null); create unique index on computed ((id + 0))",
            lines: "",
            says: &["the key public.computed.id is not unique"],
        },
        Case {
            name: "blurred",
            sql: "create collation blurred_texts (provider = icu, locale = 'und-u-ks-level2', deterministic = false); create table blurred (id text collate blurred_texts primary key)",
            lines: "",
            says: &["the key public.blurred.id has a nondeterministic collation", "deterministic"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_column_that_is_not_ours_is_refused_and_never_overwritten() {
    each_is_refused(&[
        Case {
            name: "foreign_column",
            sql: "create table foreign_column (id bigint primary key, catchword_revision bigint)",
            lines: "",
            says: &[
                "foreign_column has a column catchword_revision that catchword did not make",
                "choose another name with revision",
                "comment on column public.foreign_column.catchword_revision",
            ],
        },
        Case {
            name: "other_name",
            sql: "create table other_name (id bigint primary key, version bigint)",
            lines: "revision = \"version\"",
            says: &["other_name has a column version that catchword did not make"],
        },
        Case {
            name: "wrong_type",
            sql: "create table wrong_type (id bigint primary key, catchword_revision integer); comment on column wrong_type.catchword_revision is 'catchword: revision'",
            lines: "",
            says: &["the column public.wrong_type.catchword_revision is not what catchword needs", "bigint, nullable, with no default"],
        },
        Case {
            name: "with_default",
            sql: "create table with_default (id bigint primary key, catchword_revision bigint default 0); comment on column with_default.catchword_revision is 'catchword: revision'",
            lines: "",
            says: &["the column public.with_default.catchword_revision is not what catchword needs"],
        },
        Case {
            name: "not_null",
            sql: "create table not_null (id bigint primary key, catchword_revision bigint not null); comment on column not_null.catchword_revision is 'catchword: revision'",
            lines: "",
            says: &["the column public.not_null.catchword_revision is not what catchword needs"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_would_fire_after_ours_is_refused() {
    each_is_refused(&[
        Case {
            name: "later",
            sql: "create function later_trigger() returns trigger language plpgsql as $$ begin return new; end $$;
                  create table later (id bigint primary key);
                  create trigger zzzz before insert on later for each row execute function later_trigger()",
            lines: "",
            says: &[
                "the trigger zzzz on public.later fires after zzz_catchword_later_revision",
                "alter trigger zzzz on public.later rename to",
            ],
        },
        Case {
            // bytes decide, not the locale
            name: "later_by_bytes",
            sql: "create table later_by_bytes (id bigint primary key);
                  create trigger \"ZEBRA\" before update on later_by_bytes for each row execute function later_trigger();
                  create trigger \"éclair\" before update on later_by_bytes for each row execute function later_trigger()",
            lines: "",
            says: &["the trigger \"éclair\" on public.later_by_bytes fires after"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_that_fire_before_ours_or_after_the_row_are_no_obstacle() {
    let world = attach(Layout {
        sql: format!(
            "{} create function harmless() returns trigger language plpgsql as $$ begin return new; end $$;
             create trigger zzz before insert on item for each row execute function harmless();
             create trigger \"ZZZZ\" before update on item for each row execute function harmless();
             create trigger zzzz_after after insert on item for each row execute function harmless();
             create trigger zzzz_delete before delete on item for each row execute function harmless();
             create trigger zzzz_statement before insert on item for each statement execute function harmless();",
            item("item", "bigint")
        ),
        more: collection_lines("item", ""),
        ..Layout::default()
    })
    .await;
    world.sql("insert into item (id) values (1)").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'item'").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_not_one_of_key_revision_and_body_is_refused() {
    each_is_refused(&[
        Case {
            name: "viewless",
            sql: "create table viewless (id bigint primary key)",
            lines: "",
            says: &["the view viewless_document does not exist", "create view viewless_document as select id as key"],
        },
        Case {
            name: "bodiless",
            sql: "create table bodiless (id bigint primary key, catchword_revision bigint); comment on column bodiless.catchword_revision is 'catchword';
                  create view bodiless_document as select id as key, catchword_revision as revision from bodiless",
            lines: "",
            says: &["the view bodiless_document has no column body (json or jsonb)", "a view returns (key, revision, body)"],
        },
        Case {
            name: "wordy",
            sql: "create table wordy (id bigint primary key, catchword_revision bigint); comment on column wordy.catchword_revision is 'catchword';
                  create view wordy_document as select id as key, catchword_revision as revision, 'text'::text as body from wordy",
            lines: "",
            says: &["the view wordy_document has body of type text, not json or jsonb", "correct the view"],
        },
        Case {
            name: "narrow",
            sql: "create table narrow (id bigint primary key, catchword_revision bigint); comment on column narrow.catchword_revision is 'catchword';
                  create view narrow_document as select id::integer as key, catchword_revision as revision, '{}'::json as body from narrow",
            lines: "",
            says: &["the view narrow_document has key of type integer, not bigint"],
        },
        Case {
            name: "rounded",
            sql: "create table rounded (id bigint primary key, catchword_revision bigint); comment on column rounded.catchword_revision is 'catchword';
                  create view rounded_document as select id as key, catchword_revision::integer as revision, '{}'::json as body from rounded",
            lines: "",
            says: &["the view rounded_document has revision of type integer, not bigint"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_whose_revision_is_not_the_column_is_refused() {
    each_is_refused(&[
        Case {
            // told without a row
            name: "constant",
            sql: "create table constant (id bigint primary key);
                  create view constant_document as select id as key, 7::bigint as revision, '{}'::json as body from constant",
            lines: "",
            says: &["revision in the view constant_document is not the column catchword_revision of constant", "select that column as revision"],
        },
        Case {
            name: "mixed",
            sql: "create table mixed (id bigint primary key, catchword_revision bigint); comment on column mixed.catchword_revision is 'catchword'; insert into mixed values (1, 2);
                  create view mixed_document as select id as key, catchword_revision / 2 as revision, '{}'::json as body from mixed",
            lines: "",
            says: &["revision in the view mixed_document is not the column catchword_revision of mixed"],
        },
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_reads_the_whole_table_for_a_batch_is_refused() {
    let refused = |name: &'static str, sql: &'static str| Case {
        name,
        sql,
        lines: "",
        says: &["reads the whole of", "take the key as the bare column", "scalar subselect or lateral"],
    };
    each_is_refused(&[
        refused(
            "grouped",
            "create table grouped (id bigint primary key, parent bigint, catchword_revision bigint); comment on column grouped.catchword_revision is 'catchword'; insert into grouped select i, i from generate_series(1, 10001) i; analyze grouped;
             create view grouped_document as select g.id as key, g.catchword_revision as revision, json_build_object('replies', r.n) as body
               from grouped g left join (select parent, count(*) as n from grouped group by parent) r on r.parent = g.id",
        ),
        refused(
            "windowed",
            "create table windowed (id bigint primary key, text text, catchword_revision bigint); comment on column windowed.catchword_revision is 'catchword'; insert into windowed select i, 'w' from generate_series(1, 10001) i; analyze windowed;
             create view windowed_document as select id as key, catchword_revision as revision, json_build_object('place', row_number() over (order by text)) as body from windowed",
        ),
        refused(
            "cast_key",
            "create table cast_key (id uuid primary key, catchword_revision bigint); comment on column cast_key.catchword_revision is 'catchword'; insert into cast_key select gen_random_uuid() from generate_series(1, 30000) i;
             create view cast_key_document as select id::text::uuid as key, catchword_revision as revision, '{}'::json as body from cast_key",
        ),
        refused(
            "limited",
            "create table limited (id bigint primary key, catchword_revision bigint); comment on column limited.catchword_revision is 'catchword'; insert into limited select i from generate_series(1, 10001) i; analyze limited;
             create view limited_document as select id as key, catchword_revision as revision, '{}'::json as body from limited limit 1000000",
        ),
        refused(
            "joined",
            "create table many (item bigint, word text); insert into many select i, 'w' from generate_series(1, 10001) i; analyze many;
             create table joined (id bigint primary key, catchword_revision bigint); comment on column joined.catchword_revision is 'catchword';
             create view joined_document as select id as key, catchword_revision as revision, (select json_agg(word) from many where item = id) as body from joined",
        ),
    ])
    .await;
}

/// In a small table every index costs the same, so that the plan may take any of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_view_is_taken_however_few_rows_there_are() {
    let world = World::with(Layout {
        sql: "create table page (id bigint primary key, site bigint not null, language bigint, title text, parent bigint, catchword_revision bigint);
              comment on column page.catchword_revision is 'catchword';
              create index on page (language); create index on page (site, title); create index on page (parent);
              create view page_document as
              select p.id as key, p.catchword_revision as revision, json_build_object('title', p.title, 'above', above.title, 'below', (select count(*) from page b where b.parent = p.id)) as body
                from page p left join page above on above.id = p.parent where p.language is not null"
            .into(),
        more: "[[collection]]\nname = \"page\"\ntable = \"page\"\nkey = \"id\"\nview = \"page_document\"\nmapping = \"bystander.json\"\n".into(),
        migrated: false,
        ..Layout::default()
    })
    .await;
    let passes = async |when: &str| {
        let (code, _, err) = world.run(&["migrate"]).await;
        assert_eq!(code, 0, "{when}: {err}");
        let (_, words, _) = world.run(&["doctor", "--json"]).await;
        let report: serde_json::Value = serde_json::from_str(&words).unwrap();
        let shape = report["lines"].as_array().unwrap().iter().find(|line| line["group"] == "page view" && line["what"] == "shape");
        assert_eq!(shape.unwrap()["level"], "ok", "{when}: {words}");
    };
    passes("empty").await;
    for rows in [1, 3, 100] {
        world.sql("truncate page").await;
        world.sql(&format!("insert into page select i, 1, 1, 'a', null from generate_series(1, {rows}) i")).await;
        passes(&format!("{rows} rows")).await;
        world.sql("analyze page").await;
        passes(&format!("{rows} rows, counted")).await;
    }
    world.sql("truncate page; analyze page").await;
    passes("emptied and counted").await;
    world.sql("insert into page select i, 1, 1, 'a', null from generate_series(1, 20000) i; analyze page; delete from page").await;
    passes("deleted").await;
    world.sql("analyze page").await;
    passes("deleted, counted and not yet cleaned").await;
    world.sql("vacuum (truncate off) page").await;
    passes("deleted, and its pages kept").await;
    world.sql("vacuum analyze page").await;
    passes("deleted and counted").await;
    world.sql("insert into page select i, 1, 1, 'a', i - 1 from generate_series(1, 20000) i; analyze page").await;
    passes("large").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_the_configuration_that_do_not_exist_are_refused() {
    const TABLE: &str = "create table named (id bigint primary key, text text, twice text generated always as (text || text) stored, catchword_revision bigint); comment on column named.catchword_revision is 'catchword';
         create view named_document as select id as key, catchword_revision as revision, '{}'::json as body from named; create table near (name text); create view far as select 1 as name";
    let named = |name: &'static str, lines: &'static str, says: &'static [&'static str]| Case { name, sql: "", lines, says };
    each_is_refused(&[
        Case {
            name: "named",
            sql: TABLE,
            lines: "scopes = { user = \"nobody\" }",
            says: &["named has no column nobody", "correct scopes or period"],
        },
        named(
            "named_period",
            "table = \"named\"\nview = \"public.named_document\"\nperiod = \"never\"",
            &["named has no column never", "correct scopes or period"],
        ),
        named(
            "named_capitals",
            "table = \"public.Absent\"\nview = \"v\"",
            &["the table public.Absent does not exist", "table = 'schema.\"Table\"'"],
        ),
        named(
            "named_watch",
            "table = \"named\"\nview = \"v\"\nwatch = [\"text\", \"unseen\"]",
            &["named has no column unseen", "correct watch"],
        ),
        named(
            "named_generated",
            "table = \"named\"\nview = \"v2\"\nwatch = [\"twice\"]",
            &["named.twice is generated, and cannot be watched", "watch the columns it is generated from"],
        ),
        named(
            "named_related",
            "table = \"named\"\nview = \"v3\"\ntouches = [{ table = \"nowhere\", column = \"id\", row_column = \"text\" }]",
            &["the related table nowhere does not exist", "correct touches"],
        ),
        named(
            "named_related_view",
            "table = \"named\"\nview = \"v4\"\ntouches = [{ table = \"far\", column = \"name\", row_column = \"text\" }]",
            &["the related table far is not a plain table"],
        ),
        named(
            "named_related_column",
            "table = \"named\"\nview = \"v5\"\ntouches = [{ table = \"near\", column = \"id\", row_column = \"text\" }]",
            &["the related table near has no column id", "correct touches"],
        ),
        named(
            "named_row_column",
            "table = \"named\"\nview = \"v6\"\ntouches = [{ table = \"near\", column = \"name\", row_column = \"label\" }]",
            &["named has no column label", "row_column"],
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_is_another_collections_is_refused() {
    let world = attached().await;
    let mut config = world.catchword.config().collections.iter().find(|c| c.name == "item").unwrap().clone();
    config.name = "thing".into();
    let before: String = world.one(MADE).await;
    let said = collection::attach(&world.pool, &config).await.unwrap_err().to_string();
    assert!(
        said.contains(
            "item.catchword_revision is the revision of collection item already; each collection on a table has a column of its own: \
             write revision = \"catchword_revision_thing\", and let its view select that column as revision"
        ),
        "{said}"
    );
    assert_eq!(world.one::<String>(MADE).await, before);
}

async fn refused_by_connect(world: &World) -> String {
    match Catchword::connect(world.catchword.config().clone(), &world.environment).await {
        Ok(_) => panic!("connect refuses nothing"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_is_missing_older_or_newer_is_refused() {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    assert_eq!(refused_by_connect(&world).await, "there is no schema catchword in this database; run: catchword migrate");

    migrate::apply(&world.pool).await.unwrap();
    world.sql("delete from catchword._migrations where version = (select max(version) from catchword._migrations)").await;
    let said = refused_by_connect(&world).await;
    assert!(said.contains("older than this binary, it lacks 00") && said.contains("run: catchword migrate"), "{said}");

    world
        .sql("insert into catchword._migrations (version, description, success, checksum, execution_time) values (9001, 'tomorrow', true, '', 0)")
        .await;
    let newer = "the schema catchword is at version 9001, newer than this binary; install the newer catchword";
    assert_eq!(refused_by_connect(&world).await, newer);
    let before: String = world.one(MADE).await;
    assert_eq!(world.catchword.migrate().await.unwrap_err().to_string(), newer);
    assert_eq!(world.one::<String>(MADE).await, before);
    let (code, _, said) = world.run(&["migrate"]).await;
    assert_eq!((code, said.trim()), (2, format!("catchword: {newer}").as_str()));
}

/// Whether the server is one is asked of Postgres; here the answer is put in its mouth.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_refused() {
    let world = attached().await;
    // Postgres' own answer, in this database alone
    world.sql("create or replace function pg_catalog.pg_is_in_recovery() returns boolean language sql as 'select true'").await;
    let another = Catchword::open(world.catchword.config().clone(), &world.environment).unwrap();
    let said = "this Postgres is a standby; set DATABASE_URL to the primary";
    assert_eq!(refused_by_connect(&world).await, said);
    assert_eq!(another.migrate().await.unwrap_err().to_string(), said);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_that_elasticsearch_refuses_and_an_elasticsearch_that_is_down_leave_no_triggers() {
    let mapping = std::env::temp_dir().join(format!("catchword-test-{}.json", uuid::Uuid::new_v4()));
    let analysis = json!({ "analysis": { "analyzer": { "a": { "type": "custom", "tokenizer": "nobody_has_this" } } } });
    std::fs::write(&mapping, json!({ "settings": analysis, "mappings": { "properties": {} } }).to_string()).unwrap();
    let world = World::with(Layout {
        sql:
            "create table page (id bigint primary key, catchword_revision bigint); comment on column page.catchword_revision is 'catchword';
              create view page_document as select id as key, catchword_revision as revision, '{}'::json as body from page"
                .into(),
        more: format!("[[collection]]\nname = \"page\"\ntable = \"page\"\nkey = \"id\"\nview = \"page_document\"\nmapping = {mapping:?}\n"),
        migrated: false,
        gated: true,
        ..Layout::default()
    })
    .await;
    let attached = "select (select count(*) from pg_trigger where not tgisinternal and tgname like '%catchword%') + (select count(*) from catchword.collection)";
    let left = "no table was attached or changed";
    for (why, prepare) in [("could not create index", false), ("could not", true)] {
        if prepare {
            world.gate.as_ref().unwrap().refuse();
        }
        let (code, _, err) = world.run(&["migrate"]).await;
        assert!(code == 2 && err.contains(why) && err.contains(left), "{err}");
        assert_eq!(world.one::<i64>(attached).await, 0);
    }
    let (code, _, err) = world.run(&["migrate", "--dry-run"]).await;
    assert!(code == 1 && err.contains("catchword migrate would fail: "), "{err}");
    world.gate.as_ref().unwrap().pass();

    std::fs::write(&mapping, "{}").unwrap();
    let (code, _, err) = world.run(&["migrate", "--dry-run"]).await;
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("table attached"), "{out}");
    // what is refused by Postgres leaves no index
    world.sql("create table next (id text primary key); create view next_document as select 1 as key").await;
    let config = std::fs::read_to_string(world.folder.join("catchword.toml")).unwrap();
    let more =
        "\n[[collection]]\nname = \"next\"\ntable = \"next\"\nkey = \"id\"\nview = \"next_document\"\nmapping = \"bystander.json\"\n";
    std::fs::write(world.folder.join("catchword.toml"), config + more).unwrap();
    let (code, _, err) = world.run(&["migrate"]).await;
    assert_eq!(code, 2, "{err}");
    assert_eq!(world.http("GET", &format!("/{}", world.index("next")), None).await.0, 404);
    std::fs::remove_file(mapping).unwrap();
}

/// A world that is not migrated, with something in the way in Elasticsearch.
async fn with_an_index_in_the_way(name: &str, body: serde_json::Value) -> (World, String) {
    let world = World::with(Layout { migrated: false, ..Layout::default() }).await;
    let (status, answer) = world.http("PUT", &format!("/{}{name}", world.prefix), Some(body)).await;
    assert_eq!(status, 200, "{answer}");
    let said = world.catchword.migrate().await.unwrap_err().to_string();
    assert_eq!(world.one::<i64>("select count(*) from catchword.collection").await, 0, "no table was attached: {said}");
    assert_eq!(world.one::<i64>("select count(*) from pg_trigger where tgname like '%catchword%'").await, 0);
    let (_, indices) = world.http("GET", &format!("/{}*", world.prefix), None).await;
    assert_eq!(indices.as_object().unwrap().len(), 1, "no index was made: {indices}");
    (world, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_on_the_name_of_the_alias_is_refused() {
    let (world, said) = with_an_index_in_the_way("annotation", json!({})).await;
    let name = world.alias("annotation");
    assert!(said.contains(&format!("{name} is an index, and catchword needs that name for an alias")), "{said}");
    assert!(said.contains("give the collection another `index`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_catchword_did_not_make_is_refused() {
    let (world, said) = with_an_index_in_the_way("annotation-000001", json!({})).await;
    assert!(said.contains(&format!("index {} does not carry catchword's mark", world.index("annotation"))), "{said}");
    assert!(said.contains("give the collection another `index`"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_installation_is_refused() {
    let theirs = "11111111-1111-1111-1111-111111111111";
    let meta = json!({ "mappings": { "_meta": { "catchword": { "installation": theirs, "collection": "annotation" } } } });
    let (_, said) = with_an_index_in_the_way("annotation-000001", meta).await;
    assert!(said.contains(&format!("belongs to installation {theirs}")), "{said}");
    assert!(said.contains("check ELASTICSEARCH_URL and DATABASE_URL, or set CATCHWORD_INDEX_PREFIX"), "{said}");

    // a copy of the database that became an installation of its own, pointed at the indices of the first
    let world = World::new().await;
    world.sql("update catchword.installation set id = gen_random_uuid()").await;
    let said = refused_by_connect(&world).await;
    assert!(said.contains("belongs to installation") && said.contains("check ELASTICSEARCH_URL"), "{said}");
}
