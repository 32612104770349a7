//! Partitioned tables: whatever happens to rows, and to the partitions that hold them, the index follows.

use catchword::collection::{self, Attached};
use tokio_util::sync::CancellationToken;

use crate::attach::recipe::recipe;
use crate::common::{Layout, Truth, World, eventually, start};

/// A table of each kind, with room for more partitions.
const KINDS: [(&str, &str, &str); 4] = [
    (
        "ranged",
        "primary key (id)) partition by range (id)",
        "create table ranged_a partition of ranged for values from (0) to (100);
         create table ranged_b partition of ranged for values from (100) to (10000)",
    ),
    (
        "listed",
        "primary key (tenant, id)) partition by list (tenant)",
        "create table listed_a partition of listed for values in ('red', 'blue'); create table listed_b partition of listed default",
    ),
    (
        "hashed",
        "primary key (id)) partition by hash (id)",
        "create table hashed_a partition of hashed for values with (modulus 2, remainder 0);
         create table hashed_b partition of hashed for values with (modulus 2, remainder 1)",
    ),
    (
        "nested",
        "primary key (tenant, id)) partition by list (tenant)",
        "create table nested_red partition of nested for values in ('red') partition by range (id);
         create table nested_a partition of nested_red for values from (0) to (100);
         create table nested_b partition of nested_red for values from (100) to (10000);
         create table nested_rest partition of nested default",
    ),
];

fn several(name: &str) -> bool {
    ["listed", "nested"].contains(&name)
}

fn sql_of((name, constraint, partitions): (&str, &str, &str)) -> String {
    let key = if several(name) { "tenant, id" } else { "id as key" };
    format!(
        "create table {name} (id bigint, tenant text not null default 'red', text text, catchword_revision bigint, {constraint};
         comment on column {name}.catchword_revision is 'catchword: revision';
         create view {name}_document as select {key}, catchword_revision as revision, json_build_object('text', text) as body from {name} where text is distinct from 'hidden';
         {partitions};\n"
    )
}

fn toml_of(name: &str) -> String {
    let key = if several(name) { "[\"tenant\", \"id\"]" } else { "\"id\"" };
    format!(
        "[[collection]]\nname = \"{name}\"\ntable = \"{name}\"\nkey = {key}\nview = \"{name}_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n"
    )
}

async fn world_of(names: &[&str]) -> World {
    let kinds = KINDS.iter().filter(|(name, ..)| names.contains(name));
    World::with(Layout {
        sql: kinds.map(|kind| sql_of(*kind)).collect(),
        more: names.iter().map(|name| toml_of(name)).collect(),
        tick: "* * * * * *",
        ..Layout::default()
    })
    .await
}

async fn agree(world: &World, name: &str) {
    let key = if several(name) { "tenant || '/' || id" } else { "id::text" };
    let of_view = if several(name) { "tenant || '/' || id" } else { "key::text" };
    let rows = format!("select {key} as key, catchword_revision as revision from {name}");
    let documents = format!("select {of_view} as key, revision, body from {name}_document");
    world.agree_on(Truth { collection: name, rows: &rows, documents: &documents }).await;
}

/// Until nothing is left to do for it.
async fn drain(world: &World, name: &str) {
    eventually("the queue is empty", async || {
        world.catchword.drain("test", &[name]).await.unwrap();
        world.one::<i64>(&format!("select count(*) from catchword.job where collection = '{name}'")).await == 0
    })
    .await;
}

/// What a worker does at a tick when partitions changed, and then the audit that it asked for, if it did.
async fn noted_and_audited(world: &World, name: &str) -> Option<String> {
    let said: Option<String> = world.one(&format!("select catchword.note_partitions('{name}')")).await;
    let mut upkeep = world.catchword.upkeep(&[name]);
    eventually("the audit has come to its end", async || {
        upkeep.round(&CancellationToken::new()).await.unwrap();
        world.one::<i64>("select count(*) from catchword.audit where finished_at is null").await == 0
    })
    .await;
    drain(world, name).await;
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_write_to_every_kind_of_partition_reaches_the_index() {
    let names: Vec<&str> = KINDS.iter().map(|(name, ..)| *name).collect();
    let world = world_of(&names).await;
    let merges = world.postgres().await >= 15;
    for name in names {
        let conflict = if several(name) { "(tenant, id)" } else { "(id)" };
        let moves = match name {
            "ranged" => "update ranged set id = id + 500 where id between 1 and 5",
            "hashed" => "update hashed set id = id + 501 where id between 1 and 5",
            _ => "update {name} set tenant = 'green' where id between 1 and 5",
        };
        for write in [
            "insert into {name} (id, text) select i, 'first' from generate_series(1, 40) i",
            "insert into {name} (id, text) values (150, 'further'), (151, 'further')",
            "update {name} set text = 'second' where id % 2 = 0",
            "update {name}_a set text = 'through the partition' where id < 30",
            "delete from {name}_a where id = (select max(id) from {name}_a)",
            "insert into {name} (id, text) values (1, 'x'), (60, 'x') on conflict {conflict} do update set text = 'by conflict'",
            "copy {name} (id, tenant, text) from program 'echo 70,red,copied' (format csv)",
            "merge into {name} t using (values (2::bigint), (80)) as v (id) on t.id = v.id when matched then delete when not matched then insert (id, text) values (v.id, 'merged')",
            moves,
            // a delete and an insert of one key in one statement
            "with moved as (delete from {name} where id between 6 and 9 returning id, tenant) insert into {name} (id, tenant, text) select id, tenant, 'again' from moved",
            "update {name} set text = 'hidden' where id between 10 and 12",
            "begin; insert into {name} (id, text) values (90, 'never'); rollback",
            "begin isolation level serializable; update {name} set text = 'serial' where id = 30; delete from {name} where id = 31; commit",
        ] {
            if write.starts_with("merge") && !merges {
                continue;
            }
            let write = write.replace("{name}", name).replace("{conflict}", conflict);
            let before: i64 = world.one(&format!("select count(*) from catchword.job where collection = '{name}'")).await;
            world.sql(&write).await;
            let after: i64 = world.one(&format!("select count(*) from catchword.job where collection = '{name}'")).await;
            assert_eq!(after > before, !write.contains("never"), "{write}");
        }
        drain(&world, name).await;
        agree(&world, name).await;
        // nothing was missed by the triggers: an audit finds nothing
        let (code, said, errors) = world.run(&["audit", name, "--content"]).await;
        assert_eq!(code, 0, "{said}{errors}");
        world.sql(&format!("select catchword.reindex('{name}', p_rewrite => true); select catchword.raise_floor('{name}')")).await;
        drain(&world, name).await;
        agree(&world, name).await;
        // through a partition, and then through the table
        world.sql(&format!("truncate {name}_a")).await;
        drain(&world, name).await;
        agree(&world, name).await;
        assert!(!world.found(name).await.is_empty(), "{name}: the other partitions are as they were");
        world.sql(&format!("truncate {name}")).await;
        drain(&world, name).await;
        agree(&world, name).await;
        assert_eq!(world.found(name).await.len(), 0, "{name}");
    }
    let (code, said, errors) = world.run(&["doctor"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert!(!said.contains("FAIL"), "{said}");
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_come_and_go_with_a_partition_are_found() {
    for name in ["ranged", "nested"] {
        let world = world_of(&[name]).await;
        let above = if name == "nested" { "nested_red" } else { "ranged" };
        world.sql(&format!("insert into {name} (id, text) select i, 'text ' || i from generate_series(90, 110) i")).await;
        drain(&world, name).await;
        agree(&world, name).await;

        for (change, content) in [
            // gone, with ten documents
            (format!("alter table {above} detach partition {name}_a"), false),
            // changed by nobody's leave, and back: the numbers are the same, the documents are not
            (
                format!(
                    "update {name}_a set text = 'changed in secret' where id = 95; delete from {name}_a where id = 96;
                     insert into {name}_a (id, text) values (3, 'without a number');
                     alter table {above} attach partition {name}_a for values from (0) to (100)"
                ),
                true,
            ),
            // out and in again between two ticks
            (
                format!(
                    "alter table {above} detach partition {name}_a; update {name}_a set text = 'in between' where id = 97;
                     alter table {above} attach partition {name}_a for values from (0) to (100)"
                ),
                true,
            ),
            // a table from elsewhere
            (
                format!(
                    "create table {name}_c (like {name} including all); insert into {name}_c (id, text) select i, 'from elsewhere' from generate_series(20000, 20010) i;
                     alter table {above} attach partition {name}_c for values from (20000) to (30000)"
                ),
                true,
            ),
            (format!("drop table {name}_b"), false),
        ] {
            world.sql(&change).await;
            let said = noted_and_audited(&world, name).await.unwrap();
            assert!(said.contains("an audit looks"), "{change}: {said}");
            let asked: bool = world.one("select content from catchword.audit where reason = 'partitions' order by id desc limit 1").await;
            assert_eq!(asked, content, "{change}");
            agree(&world, name).await;
        }
        assert_eq!(noted_and_audited(&world, name).await, None, "there is nothing more to note");
        // they are seen like any other from now on
        world.sql(&format!("update {name}_a set text = 'seen'; truncate {name}_c")).await;
        drain(&world, name).await;
        agree(&world, name).await;
        world.noise_is_untouched().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_partition_is_seen_from_its_first_row_on_and_completed_by_the_worker() {
    let world = world_of(&["ranged"]).await;
    world.sql("create table ranged_c partition of ranged for values from (10000) to (20000)").await;
    world.sql("insert into ranged_c (id, text) values (10001, 'first'), (10002, 'second'); delete from ranged_c where id = 10002").await;
    drain(&world, "ranged").await;
    agree(&world, "ranged").await;
    // before anybody gave it a trigger of its own, the table tells its keys
    world.sql("truncate ranged").await;
    drain(&world, "ranged").await;
    agree(&world, "ranged").await;
    assert_eq!(world.found("ranged").await.len(), 0);

    // emptied alone, before a worker looked: that nobody saw, and an audit does
    world.sql("insert into ranged (id, text) values (10003, 'third')").await;
    drain(&world, "ranged").await;
    world.sql("truncate ranged_c").await;
    let said = noted_and_audited(&world, "ranged").await.unwrap();
    assert!(said.contains("1 came and 0 went; an audit"), "{said}");
    agree(&world, "ranged").await;

    // a worker gives it what it lacks; one that was empty when it came needs no audit
    let worker = start(&world).await;
    world.sql("create table ranged_d partition of ranged for values from (20000) to (30000)").await;
    world.sql("insert into ranged (id, text) values (20001, 'fresh')").await;
    let completed = "select exists (select from pg_trigger where tgrelid = 'ranged_d'::regclass and tgname = 'catchword_ranged_truncated')
                        and (select partitions = catchword.partitions_of(name, source) from catchword.collection where name = 'ranged')";
    eventually("the new partition is complete", async || world.one(completed).await).await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit where reason = 'partitions' and finished_at is null").await, 0);
    world.sql("truncate ranged_d").await;
    eventually("the worker has done it all", async || {
        world.one::<i64>("select count(*) from catchword.job where collection = 'ranged'").await == 0
    })
    .await;
    drop(worker);
    agree(&world, "ranged").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_statement_stands_behind_live_writes_and_no_setting_fails_a_write() {
    let world = world_of(&["hashed"]).await;
    let counts = "select string_agg(priority || ': ' || n, ', ' order by priority) from (select priority, count(*) as n from catchword.job where collection = 'hashed' group by 1) as c";
    world.sql("insert into hashed (id) select generate_series(1, 2500)").await;
    assert_eq!(world.one::<String>(counts).await, "0: 1000, 100: 1500");
    drain(&world, "hashed").await;
    world.sql("update hashed set text = 'x' where id <= 800").await;
    world.sql("update hashed set text = 'y' where id <= 800").await;
    assert_eq!(world.one::<String>(counts).await, "0: 1600", "each statement counts for itself");
    drain(&world, "hashed").await;
    for forged in ["x", "1 2", "", "9999999999.1 999999999 1", "1763371234.1 12 99999999999999999999"] {
        world.sql(&format!("set catchword.rows_hashed = '{forged}'; update hashed set text = 'forged' where id = 1; delete from hashed where id = 2; insert into hashed (id) values (2); reset catchword.rows_hashed")).await;
    }
    drain(&world, "hashed").await;
    agree(&world, "hashed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_partition_lacks_is_named_and_repaired() {
    let world = world_of(&["ranged"]).await;
    let config = world.catchword.config().collections.iter().find(|config| config.name == "ranged").unwrap().clone();
    for (harm, sentence) in [
        (
            "alter table ranged_a disable trigger catchword_ranged_updated",
            "trigger catchword_ranged_updated on public.ranged_a is disabled",
        ),
        (
            "alter table ranged_b disable trigger zzz_catchword_ranged_revision",
            "trigger zzz_catchword_ranged_revision on public.ranged_b is disabled",
        ),
        ("alter table ranged disable trigger user", "is disabled"),
        ("drop trigger catchword_ranged_truncated on ranged_a", "trigger catchword_ranged_truncated on public.ranged_a is missing"),
        (
            "alter table ranged_a disable trigger catchword_ranged_truncated",
            "trigger catchword_ranged_truncated on public.ranged_a is disabled",
        ),
    ] {
        world.sql(harm).await;
        let mut connection = world.catchword.pool().acquire().await.unwrap();
        let problems = collection::problems(&mut connection, &config).await.unwrap();
        assert!(problems.iter().any(|problem| problem.contains(sentence.trim_start_matches("public."))), "{harm}: {problems:?}");
        let (code, said, _) = world.run(&["doctor"]).await;
        assert!(code == 1 && said.contains(sentence.split(" on ").next().unwrap()), "{harm}: {said}");
        assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Stale("repaired".into()), "{harm}");
        assert_eq!(collection::problems(&mut connection, &config).await.unwrap(), [""; 0], "{harm}");
    }
    // a trigger of one partition that fires after ours
    world
        .sql(
            "create function late() returns trigger language plpgsql as 'begin return new; end';
             create trigger zzzz before update on ranged_a for each row execute function late()",
        )
        .await;
    let mut connection = world.catchword.pool().acquire().await.unwrap();
    let problems = collection::problems(&mut connection, &config).await.unwrap();
    assert!(problems[0].contains("trigger zzzz on") && problems[0].contains("fires after zzz_catchword_ranged_revision"), "{problems:?}");
    world.sql("drop trigger zzzz on ranged_a; alter table ranged_a set unlogged").await;
    let problems = collection::problems(&mut connection, &config).await.unwrap();
    assert!(
        problems[0].contains("ranged_a") && problems[0].contains("unlogged") && problems[0].contains("detach partition"),
        "{problems:?}"
    );
    world.sql("alter table ranged_a set logged").await;

    // another delay makes other triggers, and nothing is stale by it
    let mut slower = config.clone();
    slower.delay = Some(std::time::Duration::from_secs(5));
    assert_eq!(collection::attach(&world.pool, &slower).await.unwrap(), Attached::Changed);
    assert_eq!(collection::attach(&world.pool, &slower).await.unwrap(), Attached::Unchanged);
    assert_eq!(world.one::<i64>("select count(*) from catchword.audit where reason = 'partitions'").await, 0);

    // detached, nothing of ours is left, on no partition
    world.sql("alter table ranged detach partition ranged_b").await;
    collection::detach(&world.pool, "ranged").await.unwrap();
    let left: Vec<String> = world
        .all("select tgrelid::regclass || ' ' || tgname from pg_trigger where not tgisinternal and tgrelid in ('ranged'::regclass, 'ranged_a'::regclass, 'ranged_b'::regclass)")
        .await;
    assert_eq!(left, [""; 0]);
    world.sql("insert into ranged (id) values (1); truncate ranged; truncate ranged_b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_partitions_cannot_be_trusted_is_refused() {
    let world = world_of(&["ranged"]).await;
    let config = world.catchword.config().collections.iter().find(|config| config.name == "ranged").unwrap().clone();
    collection::detach(&world.pool, "ranged").await.unwrap();
    let refused = async |config: &catchword::config::Collection| collection::attach(&world.pool, config).await.unwrap_err().to_string();

    let mut part = config.clone();
    part.table = "ranged_a".into();
    let said = refused(&part).await;
    assert!(said.contains("ranged_a is a partition") && said.contains("table = \"public.ranged\""), "{said}");
    world.sql("alter table ranged_a set unlogged").await;
    let said = refused(&config).await;
    assert!(said.contains("the partition public.ranged_a is unlogged") && said.contains("set logged"), "{said}");
    world.sql("alter table ranged_a set logged").await;
    // no partition of an attached one, and no child of a plain one
    world.sql("create table plain (id bigint primary key); create table child () inherits (plain)").await;
    part.table = "plain".into();
    assert!(refused(&part).await.contains("inherits or is inherited from"));
    assert!(matches!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Stale(_)));
}

/// Writers, partitions that come and go, and a worker, all at once.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_partitions_change_under_traffic() {
    let world = world_of(&["ranged"]).await;
    let worker = start(&world).await;
    let writers: Vec<_> = (0..3_i64)
        .map(|writer| {
            let pool = world.pool.clone();
            tokio::spawn(async move {
                for step in 0..120_i64 {
                    let (id, other) = ((step * 7 + writer * 13) % 9000, (step * 11 + writer) % 9000);
                    for statement in [
                        format!("insert into ranged (id, text) values ({id}, 'w{writer} s{step}') on conflict (id) do update set text = excluded.text"),
                        format!("update ranged set id = {other} where id = {id} and not exists (select from ranged where id = {other})"),
                        format!("delete from ranged where id = {}", (step * 3 + writer * 5) % 9000),
                    ] {
                        // what Postgres itself refuses under such traffic: a key that came meanwhile, a row that moved, a partition that went
                        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.clone())).execute(&pool).await;
                        if let Err(error) = done {
                            let code = error.as_database_error().and_then(|e| e.code()).unwrap_or_default().into_owned();
                            assert!(["23505", "40001", "40P01", "23514"].contains(&code.as_str()), "{statement}: {error}");
                        }
                    }
                }
            })
        })
        .collect();
    for round in 0..4 {
        let (from, to) = (10_000 + round * 1000, 11_000 + round * 1000);
        world.sql(&format!("create table ranged_n{round} partition of ranged for values from ({from}) to ({to}); insert into ranged (id, text) select i, 'new' from generate_series({from}, {from} + 30) i")).await;
        if round % 2 == 1 {
            let gone = round - 1;
            world.sql(&format!("alter table ranged detach partition ranged_n{gone}; drop table ranged_n{gone}")).await;
        }
        world.sql("select catchword.touch('ranged', array(select id::text from ranged order by id limit 50))").await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let known = "select partitions = catchword.partitions_of(name, source) from catchword.collection where name = 'ranged'";
    eventually("the worker knows the partitions", async || world.one(known).await).await;
    drop(worker);
    noted_and_audited(&world, "ranged").await;
    agree(&world, "ranged").await;
    world.noise_is_untouched().await;
}

/// As docs/adopt.md has it.
#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_for_partitions_works() {
    let world = recipe("Partitioned tables").followed("select 1").await;
    world.sql("insert into measure (day, id, text) select date '2026-01-15' + (i % 3) * 20, i, 'm' from generate_series(1, 30) i").await;
    drain(&world, "measure").await;
    let truth = Truth {
        collection: "measure",
        rows: "select to_char(day, 'YYYY-MM-DD') || '/' || id as key, catchword_revision as revision from measure",
        documents: "select to_char(day, 'YYYY-MM-DD') || '/' || id as key, revision, body from measure_document",
    };
    world.agree_on(truth).await;
    world.sql("drop table measure_2026_01").await;
    noted_and_audited(&world, "measure").await.unwrap();
    world.agree_on(truth).await;
    assert_eq!(world.found("measure").await.len(), 20);
}

/// Each row shows its replies, which may be in a partition that comes with them.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_partition_brought_is_not_blamed_on_somebody_else() {
    let world = World::with(Layout {
        sql: "create table thread (id bigint primary key, parent bigint, catchword_revision bigint) partition by range (id);
              comment on column thread.catchword_revision is 'catchword: revision';
              create table thread_a partition of thread for values from (0) to (100);
              create index on thread (parent);
              create view thread_document as select id as key, catchword_revision as revision,
                json_build_object('text', (select count(*)::text from thread r where r.parent = t.id)) as body from thread t"
            .into(),
        more: "[[collection]]\nname = \"thread\"\ntable = \"thread\"\nkey = \"id\"\nview = \"thread_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n\
               touches = [{ table = \"thread\", column = \"parent\", row_column = \"id\" }]\n"
            .into(),
        ..Layout::default()
    })
    .await;
    world.sql("insert into thread (id) values (1)").await;
    drain(&world, "thread").await;
    world
        .sql(
            "create table thread_b (like thread); insert into thread_b (id, parent) values (101, 1);
             alter table thread attach partition thread_b for values from (100) to (200);
             select catchword.note_partitions('thread')",
        )
        .await;
    let (code, said, errors) = world.run(&["audit", "thread", "--content"]).await;
    assert!(code == 1 && said.contains("likely cause") && said.contains("partitions of the table came or went"), "{said}{errors}");
    assert!(!said.contains("somebody else"), "{said}");
    let (_, said, _) = world.run(&["explain", "thread", "1"]).await;
    assert!(said.contains("partitions of the table came or went"), "{said}");
    noted_and_audited(&world, "thread").await;
    world.sides_agree("thread").await;
}
