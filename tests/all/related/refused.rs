//! What cannot be followed is refused by migrate with a sentence, and leaves nothing behind; what is slow gets a warning.

use catchword::collection;
use catchword::config::Touch;

use super::{change, layout, notes, settle};
use crate::common::{Layout, World};

const TABLES: &str = "create table tag (id bigint primary key, name text);
     create table note_tag (tag_id bigint, note_id bigint);
     create table part (id bigint, at date) partition by range (at); create table part_1 partition of part default;
     create table note (id bigint primary key, tag_id bigint, tags text[], born date, catchword_revision bigint)";

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_cannot_be_followed_is_refused_and_leaves_nothing() {
    let world = notes(TABLES, "'x'", "").await;
    // columns that are computed when they are read are there since 18
    let computed = world.postgres().await >= 18;
    let twice =
        format!("alter table tag add column twice text generated always as (name || name) {}", if computed { "virtual" } else { "stored" });
    world.sql(&twice).await;
    let config = world.catchword.config().collections.iter().find(|collection| collection.name == "note").unwrap();
    let made = "select count(*) from pg_class where relnamespace = 'catchword'::regnamespace";
    let before: i64 = world.one(made).await;
    let list = |names: &str| names.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    for (table, column, value, row_column, keys, refusal) in [
        ("tag", "", "count(*)", "tag_id", "", "value of the related table public.tag cannot be used: aggregate functions are not allowed"),
        ("tag", "", "(select 1)", "tag_id", "", "cannot be used: cannot use subquery"),
        ("tag", "", "nme || 'x'", "tag_id", "", "column \"nme\" does not exist"),
        ("tag", "", "1 + 1", "tag_id", "", "value of the related table tag is the same for all its rows"),
        ("tag", "", "twice", "tags", "", "tag.twice is computed when it is read, and a trigger cannot see it"),
        ("tag", "id", "", "born", "", "public.note.born is of type date, and what tag is found by is of type bigint: they are never equal"),
        (
            "tag",
            "name",
            "",
            "tag_id",
            "",
            "public.note.tag_id is of type bigint, and what tag is found by is of type text: a text that is none could not be followed; convert the value: value = \"…::bigint\"",
        ),
        ("tag", "id name", "", "tag_id tags", "", "a touch of tag has an array in a list of columns"),
        ("tag", "id name", "", "tag_id", "", "a touch of tag has 2 of column and 1 of row_column"),
        (
            "tag",
            "id",
            "",
            "",
            "select note_id, tag_id from note_tag where tag_id = any($1)",
            "the key is of type bigint, and final statement must return exactly one column",
        ),
        (
            "tag",
            "id",
            "",
            "",
            "select 'x'::text from note_tag where tag_id = any($1)",
            "the key is of type bigint, and actual return type is text",
        ),
        (
            "tag",
            "id",
            "",
            "",
            "delete from note_tag where tag_id = any($1) returning note_id",
            "keys of the related table public.tag cannot be used: syntax error",
        ),
        ("tag", "id", "", "", "select note_id from note_tag", "it does not read $1, the values that changed"),
        ("tag", "id", "", "", "select note_id from note_tag where tag_id = any($1) for update", "it locks rows"),
        ("tag", "id", "", "", "select note_id from nowhere where tag_id = any($1)", "relation \"nowhere\" does not exist"),
        ("part_1", "id", "", "id", "", "the related table part_1 is a partition"),
    ] {
        if value == "twice" && !computed {
            continue;
        }
        let mut config = config.clone();
        let touch = Touch {
            table: table.into(),
            column: list(column),
            value: some(value),
            row_column: list(row_column),
            keys: some(keys),
            watch: Vec::new(),
        };
        config.touches = vec![touch];
        let refused = collection::attach(&world.pool, &config).await.unwrap_err().to_string();
        assert!(refused.contains(refusal), "{refusal}: {refused}");
    }
    assert_eq!(world.one::<i64>(made).await, before);
    assert_eq!(world.one::<i64>("select count(*) from pg_trigger where tgrelid = 'tag'::regclass").await, 0);
    change(&world, "insert into note values (1)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_back_without_an_index_is_said_whatever_the_size_of_the_table() {
    let touches = "touches = [{ table = \"tag\", column = \"id\", row_column = \"tag_id\" },
                              { table = \"tag\", column = \"name\", row_column = \"tags\" },
                              { table = \"tag\", column = \"id\", keys = \"select note_id from note_tag where tag_id = any($1)\" },
                              { table = \"tag\", column = \"id\", row_column = \"id\" }]";
    let world = World::with(Layout { migrated: false, ..layout(TABLES, "'x'", touches) }).await;
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    for warning in [
        "warning: a change of public.tag looks for its rows by tag_id, and no index serves that: each change reads the whole of note; run: create index concurrently on public.note (tag_id)",
        "looks for its rows by tags, and no index serves that: each change reads the whole of note; run: create index concurrently on public.note using gin (tags)",
        "any($1), and no index serves that: each change reads the whole of note_tag; give the tables that it reads an index for that",
    ] {
        assert!(said.contains(warning), "{warning}: {said}");
    }
    assert_eq!(said.matches("no index serves").count(), 3, "{said}");
    assert_eq!(world.run(&["doctor"]).await.1.matches("no index serves").count(), 3);
    world.sql("create index on note (tag_id); create index on note using gin (tags); create index on note_tag (tag_id)").await;
    let (_, said, _) = world.run(&["doctor", "--all"]).await;
    assert!(!said.contains("no index serves") && said.contains("an index leads from each related table back to the rows"), "{said}");
    assert!(!world.run(&["migrate"]).await.1.contains("warning"));
    // a query that cannot be asked any more fails each change of the related table
    world.sql("drop table note_tag").await;
    let (code, said, _) = world.run(&["doctor"]).await;
    assert!(code == 1 && said.contains("relation \"public.note_tag\" does not exist"), "{said}");
}

/// Nothing becomes stale without a command; whoever runs it decides when, and is told until it is done.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_more_asks_for_a_reindex_until_it_was_run() {
    let field = "(select t.name from tag t where t.id = n.tag_id)";
    let world = notes(&format!("{TABLES}; create index on note (tag_id)"), field, "unwatched = [\"tag\"]").await;
    world.sql("insert into tag (id, name) values (1, 'a'); insert into note values (1, 1), (2, 1), (3, null)").await;
    settle(&world).await;
    world.sql("update tag set name = 'b'").await;
    let floor: i64 = world.one("select floor from catchword.collection where name = 'note'").await;
    let path = world.folder.join("catchword.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let touches = "touches = [{ table = \"tag\", column = \"id\", row_column = \"tag_id\", watch = [\"name\"] }]";
    std::fs::write(&path, text.replace("unwatched = [\"tag\"]", touches)).unwrap();

    let (code, said, errors) = world.run(&["migrate"]).await;
    let due = "the view or touches changed since the documents were built: catchword reindex note --all --rewrite";
    assert!(code == 0 && said.contains("triggers replaced") && said.contains(due), "{said}{errors}");
    assert_eq!(world.one::<i64>("select floor from catchword.collection where name = 'note'").await, floor);
    assert!(world.run(&["status"]).await.1.contains(due));
    assert!(world.run(&["migrate"]).await.1.contains(due), "until it was run");
    world.run(&["reindex", "note", "--all", "--yes"]).await;
    assert!(world.run(&["status"]).await.1.contains(due), "without new numbers nothing was written again");
    let (code, said, errors) = world.run(&["reindex", "note", "--all", "--rewrite", "--yes"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    assert!(!world.run(&["status"]).await.1.contains(due));
    settle(&world).await;
}
