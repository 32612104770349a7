//! Several collections on one table: each has its own numbers, so none of them knows of the others.

use catchword::collection::{self, Attached};

use super::recipe::recipe;
use super::{attached, config_of_item, keys_of};
use crate::common::World;

/// As docs/adopt.md says: `note` shows the text, `note_title` the title, and watches it.
async fn notes() -> World {
    recipe("Several collections on one table")
        .followed("create table note (id bigint primary key, title text not null, text text not null, read integer not null default 0)")
        .await
}

async fn drain(world: &World) {
    world.sql("update catchword.job set scheduled_at = now() - interval '1 second'").await;
    world.catchword.drain("test", &["note", "note_title"]).await.unwrap();
    let left: i64 = world.one("select count(*) from catchword.job where collection like 'note%'").await;
    assert_eq!(left, 0);
    world.sides_agree("note").await;
    world.sides_agree("note_title").await;
}

async fn scheduled(world: &World) -> (Vec<String>, Vec<String>) {
    (keys_of(world, "note").await, keys_of(world, "note_title").await)
}

fn texts(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_reaches_each_collection_of_its_table_that_watches_it() {
    let world = notes().await;
    world.sql("insert into note select i, 'title ' || i, 'text ' || i from generate_series(1, 3) i").await;
    assert_eq!(scheduled(&world).await, (texts(&["1", "2", "3"]), texts(&["1", "2", "3"])));
    let waits: Vec<i64> = world
        .all("select distinct extract(epoch from scheduled_at - enqueued_at)::bigint from catchword.job where collection like 'note%' order by 1")
        .await;
    assert_eq!(waits, [0, 5], "each has its own delay");
    drain(&world).await;
    assert_eq!(world.source("note", "1").await.unwrap()["text"], "text 1");
    assert_eq!(world.source("note_title", "1").await.unwrap()["text"], "title 1");

    for (write, ours, theirs) in [
        ("update note set text = 'other' where id = 1", texts(&["1"]), texts(&[])),
        ("update note set title = 'other' where id = 1", texts(&[]), texts(&["1"])),
        ("update note set read = read + 1", texts(&[]), texts(&[])),
        ("update note set id = 20 where id = 2", texts(&["2", "20"]), texts(&["2", "20"])),
        ("delete from note where id = 3", texts(&["3"]), texts(&["3"])),
        ("insert into note values (3, 'again', 'again')", texts(&["3"]), texts(&["3"])),
        ("insert into note values (1, 'x', 'x') on conflict (id) do update set title = 'by conflict'", texts(&[]), texts(&["1"])),
    ] {
        let before = (world.version("note", "1").await, world.version("note_title", "1").await);
        world.sql(write).await;
        let (in_note, in_title) = scheduled(&world).await;
        assert_eq!((&in_note, &in_title), (&ours, &theirs), "{write}");
        drain(&world).await;
        let after = (world.version("note", "1").await, world.version("note_title", "1").await);
        let moved = |keys: Vec<String>| keys.contains(&"1".to_owned());
        assert_eq!((before.0 != after.0, before.1 != after.1), (moved(ours), moved(theirs)), "{write}");
    }

    world.sql("insert into note select i, 't', 't' from generate_series(100, 1500) i").await;
    let priorities: Vec<String> =
        world.all("select distinct collection || ' ' || priority from catchword.job where collection like 'note%' order by 1").await;
    assert_eq!(priorities, ["note 100", "note_title 100"]);
    drain(&world).await;
    world.sql("truncate note").await;
    drain(&world).await;
    assert_eq!((world.found("note").await.len(), world.found("note_title").await.len()), (0, 0));
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_detached_and_attached_again_and_the_other_stays_right() {
    let world = notes().await;
    world.sql("insert into note select i, 'title', 'text' from generate_series(1, 5) i; delete from note where id = 5").await;
    drain(&world).await;
    let kept = "select md5(string_agg(line, ';' order by line)) from (
        select c::text from catchword.collection c where name = 'note'
        union all select r::text from catchword.record r where collection = 'note'
        union all select t.oid || t.tgname || t.xmin from pg_trigger t where tgrelid = 'note'::regclass and tgname !~ 'note_title') as k (line)";
    let before: String = world.one(kept).await;

    // writes of a moment in which both were attached: the other's jobs stay
    world.sql("update note set title = 'two', text = 'two' where id = 2").await;
    let said = collection::detach(&world.pool, "note_title").await.unwrap();
    assert!(said.contains("note.catchword_revision_title stays, because a view uses it"), "{said}");
    assert_eq!(world.one::<String>(kept).await, before);
    assert_eq!(scheduled(&world).await, (texts(&["2"]), texts(&[])));
    world.sql("update note set title = 'three' where id = 3; delete from note where id = 4").await;
    world.catchword.drain("test", &["note"]).await.unwrap();
    world.sides_agree("note").await;

    let configs = &world.catchword.config().collections;
    let title = configs.iter().find(|config| config.name == "note_title").unwrap();
    assert_eq!(collection::attach(&world.pool, title).await.unwrap(), Attached::Stale("attached".into()));
    assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'note'").await, 0);
    collection::set_targets(&world.pool, "note_title", &world.index("note_title")).await.unwrap();
    let catchword = world.another().await;
    world.sql("select catchword.reindex('note_title')").await;
    catchword.drain("test", &["note", "note_title"]).await.unwrap();
    // deleted while nobody was told: the audit finds its document
    let (_, _, errors) = world.run(&["audit", "note_title", "--repair"]).await;
    assert_eq!(errors.matches("panicked").count(), 0);
    catchword.drain("test", &["note", "note_title"]).await.unwrap();
    world.sides_agree("note").await;
    world.sides_agree("note_title").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_names_have_triggers_of_their_own() {
    let world = attached().await;
    let names = ["a".repeat(40), format!("{}b", "a".repeat(39))];
    for name in &names {
        let revision = format!("catchword_revision_{name}");
        world
            .sql(&format!(
                "alter table item add column {revision} bigint; comment on column item.{revision} is 'catchword: revision';
                 create view v_{name} as select id as key, {revision} as revision, json_build_object('text', text) as body from item"
            ))
            .await;
        let mut config = config_of_item(&world);
        (config.name, config.view, config.revision) = (name.clone(), format!("v_{name}"), revision);
        config.index = name.clone();
        assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Stale("attached".into()));
        assert_eq!(collection::attach(&world.pool, &config).await.unwrap(), Attached::Unchanged);
    }
    world.sql("insert into item (id) values (7)").await;
    for name in [&names[0], &names[1], "item"] {
        assert_eq!(keys_of(&world, name).await, ["7"], "{name}");
    }
    let problems: Vec<String> = world.all("select problem from catchword.collection c, catchword.broken_triggers(c.name)").await;
    assert_eq!(problems, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_trigger_of_the_application_fires_between_ours() {
    let world = notes().await;
    world
        .sql(
            "create function between_ours() returns trigger language plpgsql as $$ begin return new; end $$;
             create trigger zzz_catchword_note_s before insert on note for each row execute function between_ours()",
        )
        .await;
    let problems: Vec<String> =
        world.all("select problem from catchword.collection c, catchword.broken_triggers(c.name) where c.name like 'note%'").await;
    let problem = "trigger zzz_catchword_note_s on note fires after zzz_catchword_note_revision";
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|said| said.replace("public.", "") == problem), "{problems:?}");
}
