//! What tables of others have: each habit goes the whole way, and the checker compares every key both ways.

use sqlx::AssertSqlSafe;

use crate::attach::collection_lines;
use crate::common::{Layout, World};

/// A table `note` with these columns and what else stands in its SQL; `text` says what a document shows.
async fn world(columns: &str, text: &str, more: &str) -> World {
    let sql = format!(
        "create table note (id bigint primary key, {columns}, catchword_revision bigint);
         comment on column note.catchword_revision is 'catchword: revision';
         create view note_document as select n.id as key, n.catchword_revision as revision, json_build_object('text', {text}) as body from note n;
         {more}"
    );
    World::with(Layout { sql, more: collection_lines("note", "delay = \"0s\""), ..Layout::default() }).await
}

/// The queue is worked off, both sides agree, and doctor finds nothing.
async fn is_well(world: &World) {
    world.catchword.drain("test", &["note"]).await.unwrap();
    assert_eq!(jobs(world).await, 0);
    world.sides_agree("note").await;
    let (code, said, errors) = world.run(&["doctor"]).await;
    assert_eq!(code, 0, "{said}{errors}");
    world.noise_is_untouched().await;
}

async fn jobs(world: &World) -> i64 {
    world.one("select count(*) from catchword.job where collection = 'note'").await
}

async fn refused(world: &World, sql: &str) -> String {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&world.pool).await;
    done.expect_err(sql).as_database_error().unwrap().code().unwrap().into_owned()
}

async fn text(world: &World, key: &str) -> String {
    world.source("note", key).await.unwrap()["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn cascades_to_an_attached_table_are_seen() {
    let world = world(
        "author text, page bigint, text text",
        "concat_ws(' ', n.text, n.author, n.page)",
        "create table author (name text primary key); create table page (id bigint primary key);
         alter table note add foreign key (author) references author on update cascade on delete cascade;
         alter table note add foreign key (page) references page on delete set null;
         insert into author values ('mina'), ('otto'); insert into page values (7), (8);",
    )
    .await;
    world.sql("insert into note (id, author, page, text) select i, case when i % 2 = 0 then 'mina' else 'otto' end, 7 + i % 2, 'x' from generate_series(1, 20) i").await;
    is_well(&world).await;
    world.sql("update author set name = 'Mina' where name = 'mina'").await;
    assert_eq!(jobs(&world).await, 10);
    is_well(&world).await;
    assert_eq!(text(&world, "2").await, "x Mina 7");
    world.sql("delete from page where id = 7").await;
    is_well(&world).await;
    assert_eq!(text(&world, "2").await, "x Mina");
    world.sql("delete from author where name = 'Mina'").await;
    is_well(&world).await;
    assert_eq!(world.found("note").await.len(), 10);
    world.sql("truncate author cascade").await;
    is_well(&world).await;
    assert_eq!(world.found("note").await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn cascades_from_an_attached_table_do_what_they_do_without_us() {
    let world = world(
        "parent bigint, text text",
        "n.text",
        "alter table note add foreign key (parent) references note on delete cascade on update cascade;
         create table remark (note bigint references note on delete cascade on update cascade);",
    )
    .await;
    world.sql("insert into note (id, parent, text) values (1, null, 'root'), (2, 1, 'reply'), (3, 2, 'reply to a reply'), (4, null, 'other'); insert into remark values (1), (3), (4)").await;
    is_well(&world).await;
    world.sql("update note set id = 10 where id = 1").await;
    is_well(&world).await;
    assert_eq!(world.one::<i64>("select parent from note where id = 2").await, 10);
    assert_eq!(world.one::<i64>("select count(*) from remark where note = 10").await, 1);
    world.sql("delete from note where id = 10").await;
    is_well(&world).await;
    assert_eq!(world.found("note").await, ["4"]);
    assert_eq!(world.all::<i64>("select note from remark").await, [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_sets_updated_at_is_shown_and_not_moved_by_us() {
    let world = world(
        "text text, updated_at timestamptz not null default '2020-01-01', version integer not null default 0",
        "n.text || ' ' || n.version || ' ' || n.updated_at",
        "create function set_updated_at() returns trigger language plpgsql as $$ begin new.updated_at := clock_timestamp(); new.version := new.version + 1; return new; end $$;
         create trigger set_updated_at before insert or update on note for each row execute function set_updated_at();",
    )
    .await;
    world.sql("insert into note (id, text) select i, 'x' from generate_series(1, 5) i; update note set text = 'y' where id <= 3").await;
    is_well(&world).await;
    let before: String = world.one("select string_agg(updated_at::text || version, ',' order by id) from note").await;
    world.sql("select catchword.reindex('note', p_rewrite => true); select catchword.touch('note', '{1,2}')").await;
    is_well(&world).await;
    assert_eq!(world.one::<String>("select string_agg(updated_at::text || version, ',' order by id) from note").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_changes_has_the_lines_that_it_has_without_us() {
    let world = world(
        "text text",
        "n.text",
        "create table history (id bigint generated always as identity, op text, was jsonb, is_now jsonb);
         create function log_change() returns trigger language plpgsql as $$ begin
           insert into history (op, was, is_now) values (tg_op, to_jsonb(old) - 'catchword_revision', to_jsonb(new) - 'catchword_revision'); return null; end $$;
         create trigger log_change after insert or update or delete on note for each row execute function log_change();",
    )
    .await;
    world
        .sql(
            "insert into note (id, text) values (1, 'a'), (2, 'b'); update note set text = 'c' where id = 1; delete from note where id = 2",
        )
        .await;
    is_well(&world).await;
    world.sql("select catchword.reindex('note', p_rewrite => true); select catchword.touch('note', '{1}')").await;
    is_well(&world).await;
    let lines: Vec<String> =
        world.all("select op || coalesce(was ->> 'text', '') || coalesce(is_now ->> 'text', '') from history order by id").await;
    assert_eq!(lines, ["INSERTa", "INSERTb", "UPDATEac", "DELETEb"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_with_names_without_a_schema_find_what_they_found() {
    let world = world(
        "text text",
        "n.text",
        "create schema app; create table app.counter (n integer); insert into app.counter values (0);
         create function count_notes() returns trigger language plpgsql as $$ begin
           update counter set n = n + 1; new.text := new.text || ' ' || (select n from counter); return new; end $$;
         create trigger count_notes before insert or update on note for each row execute function count_notes();",
    )
    .await;
    world.sql("set search_path = app, public; insert into note (id, text) values (1, 'a'), (2, 'b'); update note set text = 'c' where id = 2; delete from note where id = 1; reset search_path").await;
    world.sql("select catchword.reindex('note', p_rewrite => true)").await;
    is_well(&world).await;
    assert_eq!(text(&world, "2").await, "c 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_and_identity_columns_are_shown_as_they_are() {
    let sql = "create table note (id bigint generated always as identity primary key, first text, last text,
                 whole text generated always as (first || ' ' || last) stored, number integer generated by default as identity, catchword_revision bigint);
               comment on column note.catchword_revision is 'catchword: revision';
               create view note_document as select id as key, catchword_revision as revision, json_build_object('text', whole || ' ' || number) as body from note";
    let lines = "delay = \"0s\"\nwatch = [\"first\", \"last\", \"number\"]";
    let world = World::with(Layout { sql: sql.into(), more: collection_lines("note", lines), ..Layout::default() }).await;
    world.sql("insert into note (first, last) values ('Mina', 'Murray'), ('Otto', 'Hahn'); insert into note (id, first, last, number) overriding system value values (70, 'Ada', 'L', 9)").await;
    is_well(&world).await;
    assert_eq!(text(&world, "1").await, "Mina Murray 1");
    world.sql("update note set last = 'Harker' where id = 1; update note set number = default where id = 70; truncate note restart identity; insert into note (first, last) values ('New', 'One')").await;
    is_well(&world).await;
    assert_eq!((world.found("note").await, text(&world, "1").await), (vec!["1".to_owned()], "New One 1".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_exclusion_constraint_refuses_leaves_nothing() {
    let world =
        world("during int4range, text text", "n.text || n.during", "alter table note add exclude using gist (during with &&);").await;
    world.sql("insert into note (id, during, text) values (1, '[1,5)', 'a'), (2, '[5,9)', 'b')").await;
    is_well(&world).await;
    assert_eq!(refused(&world, "insert into note (id, during, text) values (3, '[4,6)', 'c')").await, "23P01");
    assert_eq!(refused(&world, "update note set during = '[1,9)' where id = 1").await, "23P01");
    assert_eq!(jobs(&world).await, 0);
    world.sql("insert into note (id, during, text) values (3, '[4,6)', 'c'), (4, '[20,30)', 'd') on conflict do nothing").await;
    assert_eq!(world.all::<String>("select key from catchword.job where collection = 'note'").await, ["4"]);
    is_well(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_a_deferred_constraint_refuses_leaves_nothing() {
    let world = world(
        "place integer unique deferrable initially deferred, author bigint, text text",
        "n.text || n.place",
        "create table author (id bigint primary key); alter table note add foreign key (author) references author deferrable initially deferred;
         create function no_bad_words() returns trigger language plpgsql as $$ begin
           if new.text = 'bad' then raise exception 'bad' using errcode = 'P0001'; end if; return null; end $$;
         create constraint trigger no_bad_words after insert or update on note deferrable initially deferred for each row execute function no_bad_words();",
    )
    .await;
    world.sql("begin; insert into note (id, place, author, text) values (1, 1, 7, 'a'), (2, 2, 7, 'b'); insert into author values (7); commit").await;
    is_well(&world).await;
    // places swapped: only at the commit is each of them one again
    world.sql("begin; update note set place = 2 where id = 1; update note set place = 1 where id = 2; commit").await;
    is_well(&world).await;
    for (write, code) in [
        ("insert into note (id, place, author, text) values (3, 1, 7, 'c')", "23505"),
        ("insert into note (id, place, author, text) values (3, 3, 8, 'c')", "23503"),
        ("update note set text = 'bad'", "P0001"),
        ("delete from author", "23503"),
    ] {
        assert_eq!(refused(&world, &format!("begin; {write}; commit")).await, code, "{write}");
        world.sql("rollback").await;
    }
    assert_eq!(jobs(&world).await, 0);
    is_well(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_rules_make_of_a_statement_is_seen() {
    let world = world(
        "text text, removed boolean not null default false",
        "n.text",
        "create or replace view note_document as select n.id as key, n.catchword_revision as revision, json_build_object('text', n.text) as body from note n where not n.removed;
         create table history (id bigint, text text);
         create rule soft as on delete to note do instead update note set removed = true where id = old.id;
         create rule kept as on update to note where new.text is distinct from old.text do also insert into history values (old.id, old.text);
         create view letter as select id, text from note;
         create rule write as on insert to letter do instead insert into note (id, text) values (new.id, new.text);",
    )
    .await;
    world.sql("insert into letter values (1, 'a'), (2, 'b'); update note set text = 'c' where id = 1; delete from note where id = 2").await;
    is_well(&world).await;
    assert_eq!((world.found("note").await, text(&world, "1").await), (vec!["1".to_owned()], "c".to_owned()));
    assert_eq!(world.all::<String>("select text from history").await, ["a"]);
    assert_eq!(world.one::<i64>("select count(*) from note").await, 2, "the rule keeps the row");
}
