//! Names that could be taken for something else, and names that are looked up.

use catchword::{Direct, Error, Stored};
use sqlx::PgConnection;

use crate::common::{Layout, World};

#[tokio::test(flavor = "multi_thread")]
async fn names_that_look_like_ours_are_names() {
    // a table, a key, a view and a scope called as the places in our statements are; a collection whose trigger function has the name of
    // a function of ours
    let world = World::with(Layout {
        sql: r#"create table "{view}" ("{key}" text primary key, "{revision}" timestamptz default now(), parent bigint, "{key_type}" bigint);
            comment on column "{view}"."{key_type}" is 'catchword: revision';
            create view "{table}" as select "{key}" as key, "{key_type}" as revision, json_build_object('text', "{key}") as body from "{view}";"#
            .into(),
        more: r#"
[[collection]]
name = "raise"
table = '"{view}"'
key = "{key}"
revision = "{key_type}"
view = '"{table}"'
mapping = "bystander.json"
period = "{revision}"
delay = "0s"
scopes = { bystander = "parent" }
touches = [{ table = "bystander", column = "id", row_column = "parent" }]
"#
        .into(),
        ..Layout::default()
    })
    .await;
    world.sql(r#"insert into "{view}" ("{key}", parent) values ('{view}', 4), ('b', 5)"#).await;
    for words in [
        &["sync", "--drain"][..],
        &["status"],
        &["doctor"],
        &["explain", "raise", "{view}"],
        &["audit", "raise", "--content"],
        &["audit", "raise", "--since", "2000-01-01"],
        &["reindex", "raise", "--bystander", "4", "--yes"],
        &["reindex", "raise", "--all", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["rebuild", "raise", "--keep", "0s", "--yes"],
        &["migrate"],
    ] {
        let (code, out, err) = world.run(words).await;
        assert_eq!(code, 0, "{words:?}: {out}{err}");
    }
    assert_eq!(world.found("raise").await.len(), 2);
    world.sql(r#"delete from "{view}" where "{key}" = 'b'"#).await;
    assert_eq!(world.run(&["sync", "--drain"]).await.0, 0);
    assert_eq!(world.found("raise").await.len(), 1);
    let (code, out, err) = world.run(&["detach", "raise", "--yes"]).await;
    assert_eq!(code, 0, "{out}{err}");
    world.sql("select catchword.raise_revision(1000)").await;
}

/// A trigger function of a collection takes no argument. None of ours without one may have such a name.
#[tokio::test(flavor = "multi_thread")]
async fn no_function_of_ours_can_be_taken_for_a_trigger_function() {
    let world = World::new().await;
    let taken: Vec<String> = world
        .all("select proname::text from pg_proc where pronamespace = 'catchword'::regnamespace and prorettype <> 'trigger'::regtype and pronargs = 0 and proname ~ '_(revision|inserted|updated|deleted|truncated|touch_[0-9]+)$'")
        .await;
    assert_eq!(taken, [""; 0]);
}

/// A view calls a function that names its table without a schema, as most do, and that is found by the path of the role.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_a_view_finds_its_tables_as_in_any_session_of_the_role() {
    let world = World::with(Layout {
        sql: "create schema app; set search_path = app, public;
            create table app.setting (name text primary key, value text); insert into app.setting values ('greeting', 'hello');
            create function app.greeting() returns text language plpgsql stable as $$ begin return (select value from setting where name = 'greeting'); end $$;
            create table app.note (id bigint primary key, catchword_revision bigint);
            comment on column app.note.catchword_revision is 'catchword: revision';
            create view app.note_document as select id as key, catchword_revision as revision, json_build_object('text', app.greeting()) as body from app.note;
            do $$ begin execute format('alter database %I set search_path = app, public', current_database()); end $$;
            reset search_path"
            .into(),
        more: "\n[[collection]]\nname = \"note\"\ntable = \"note\"\nkey = \"id\"\nview = \"note_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n".into(),
        migrated: false,
        ..Layout::default()
    })
    .await;
    let (code, _, err) = world.run(&["migrate"]).await;
    assert_eq!(code, 0, "{err}");
    let catchword = world.another().await;
    world.sql("insert into app.note values (1)").await;
    for words in [
        &["sync", "--drain"][..],
        &["explain", "note", "1"],
        &["audit", "note", "--content"],
        &["reindex", "note", "--all", "--rewrite", "--yes"],
        &["sync", "--drain"],
        &["doctor"],
        &["migrate"],
    ] {
        let (code, out, err) = world.run(words).await;
        assert_eq!(code, 0, "{words:?}: {out}{err}");
    }
    assert_eq!(world.source("note", "1").await.unwrap()["text"], "hello");
    // an application's own statements are looked up by its path too, in the transaction and in the pool
    let kept = catchword
        .store_and_schedule("note", async |tx: &mut PgConnection| {
            sqlx::query("insert into note values (2)").execute(tx).await?;
            Ok::<_, Error>(Stored::new((), [2]))
        })
        .await
        .unwrap();
    assert_eq!(kept.direct, Direct::Indexed);
    assert_eq!(world.source("note", "2").await.unwrap()["text"], "hello");
    let notes: i64 = sqlx::query_scalar("select count(*) from note").fetch_one(catchword.pool()).await.unwrap();
    assert_eq!(notes, 2);
    let direct = catchword.index_now_with("note", [1], catchword::elastic::Refresh::Now).await;
    assert_eq!(direct, Direct::Indexed);
    let (code, out, err) = world.run(&["rebuild", "note", "--keep", "0s", "--yes"]).await;
    assert_eq!(code, 0, "{out}{err}");
}
