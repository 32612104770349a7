//! Every shape of a relation goes the whole way.

use serde_json::json;

use super::{change, notes, settle, touches};
use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_relation_over_two_columns_touches_only_where_both_agree() {
    let world = notes(
        "create table label (tenant bigint, code text, name text, primary key (tenant, code));
         create table note (id bigint primary key, tenant bigint, label text, catchword_revision bigint); create index on note (tenant, label)",
        "(select l.name from label l where l.tenant = n.tenant and l.code = n.label)",
        "touches = [{ table = \"label\", column = [\"tenant\", \"code\"], row_column = [\"tenant\", \"label\"], watch = [\"name\"] }]",
    )
    .await;
    world.sql(r#"insert into label values (1, 'a', 'A'), (1, 'b"]', 'B'), (2, 'a', 'other')"#).await;
    world.sql(r#"insert into note values (1, 1, 'a'), (2, 1, 'b"]'), (3, 2, 'a'), (4, null, 'a'), (5, 1, null)"#).await;
    settle(&world).await;
    assert_eq!(change(&world, "update label set name = name || '!' where tenant = 1").await.touched, 2);
    assert_eq!(change(&world, "update label set code = 'c' where tenant = 2").await.touched, 1);
    assert_eq!(change(&world, "delete from label where code = 'a'").await.touched, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_key_over_two_columns_makes_inserts_silent() {
    let world = notes(
        "create table label (tenant bigint, code text, name text, primary key (tenant, code));
         create table note (id bigint primary key, tenant bigint, label text, catchword_revision bigint, foreign key (label, tenant) references label (code, tenant))",
        "(select l.name from label l where l.tenant = n.tenant and l.code = n.label)",
        "touches = [{ table = \"label\", column = [\"tenant\", \"code\"], row_column = [\"tenant\", \"label\"] }]",
    )
    .await;
    world.sql("insert into label values (1, 'a', 'A')").await;
    assert_eq!(touches(&world).await, [""; 0]);
    world.sql("alter table note drop constraint note_label_tenant_fkey").await;
    let problems: Vec<String> = world.all("select problem from catchword.broken_triggers('note')").await;
    assert_eq!(
        problems,
        ["the foreign key from public.note.tenant, label to public.label is gone, and new rows of public.label are passed over"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_element_of_an_array_touches_on_either_side() {
    let world = notes(
        "create table label (name text primary key, colour text);
         create table shelf (id bigint primary key, note_ids bigint[], name text);
         create table note (id bigint primary key, labels text[], catchword_revision bigint); create index on note using gin (labels)",
        "json_build_array((select string_agg(l.colour, ' ' order by l.name) from label l where l.name = any(n.labels)),
                          (select string_agg(s.name, ' ' order by s.id) from shelf s where n.id = any(s.note_ids)))",
        "touches = [{ table = \"label\", column = \"name\", row_column = \"labels\", watch = [\"colour\"] },
                    { table = \"shelf\", column = \"note_ids\", row_column = \"id\", watch = [\"name\"] }]",
    )
    .await;
    world.sql("insert into label values ('a', 'red'), ('b', 'blue'), ('it''s {x,y}', 'odd')").await;
    world.sql("insert into note values (1, '{a,b}'), (2, '{b}'), (3, null), (4, array['it''s {x,y}', null])").await;
    settle(&world).await;
    assert_eq!(change(&world, "update label set colour = 'navy' where name = 'b'").await.touched, 2);
    assert_eq!(change(&world, "update label set colour = 'pink' where name like 'it%'").await.touched, 1);
    assert_eq!(change(&world, "insert into shelf values (1, '{1,3,99}', 'top')").await.touched, 2);
    // only what came and what went, and what stays: the old and the new row name them
    assert_eq!(change(&world, "update shelf set note_ids = '{3,4}'").await.touched, 3);
    assert_eq!(change(&world, "update shelf set note_ids = null").await.touched, 2);
    let doctor = world.run(&["doctor"]).await.1;
    assert!(!doctor.contains("no index serves"), "{doctor}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expression_names_rows_that_no_column_names() {
    let world = notes(
        "create table person (id bigint primary key, name text, realm text, banned boolean, seen integer default 0);
         create table note (id bigint primary key, author text, catchword_revision bigint); create index on note (author)",
        "(select bool_or(p.banned)::text from person p where 'acct:' || p.name || '@' || p.realm = n.author)",
        "touches = [{ table = \"person\", value = \"'acct:' || name || '@' || realm\", row_column = \"author\", watch = [\"banned\"] }]",
    )
    .await;
    world.sql("insert into person values (1, 'mina', 'x', false), (2, 'otto', 'x', false), (3, null, 'x', false)").await;
    world.sql("insert into note values (1, 'acct:mina@x'), (2, 'acct:mina@x'), (3, 'acct:otto@x')").await;
    settle(&world).await;
    assert_eq!(change(&world, "update person set banned = true where id = 1").await.touched, 2);
    assert_eq!(change(&world, "update person set seen = seen + 1").await.touched, 0);
    // what the expression reads is watched automatically; both names count
    assert_eq!(change(&world, "update person set name = 'otto', id = 4 where id = 1").await.touched, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_found_by_a_query_are_touched_in_bounded_steps() {
    let world = notes(
        "create table tag (id bigint primary key, name text); create table note_tag (tag_id integer, note_id integer, primary key (tag_id, note_id));
         create table note (id bigint primary key, catchword_revision bigint)",
        "(select string_agg(t.name, ' ' order by t.name) from note_tag nt join tag t on t.id = nt.tag_id where nt.note_id = n.id)",
        "touches = [{ table = \"tag\", column = \"id\", keys = \"select note_id from note_tag where tag_id = any($1) -- by its index;\" }]\nunwatched = [\"note_tag\"]",
    )
    .await;
    world.sql("insert into tag values (1, 'a'), (2, 'b'); insert into note select i from generate_series(1, 250) i").await;
    // keys that have no row are no trouble
    world.sql("insert into note_tag select 1, i from generate_series(1, 300) i; insert into note_tag select 2, i from generate_series(1, 10) i").await;
    world.catchword.drain("test", &["note"]).await.unwrap();
    for walked in [false, true] {
        world.sql("update tag set name = name || '!' where id = 1").await;
        if walked {
            // as steps that took too long leave it
            world.sql("update catchword.job set cursor = '~' where name = 'touch'").await;
        }
        let mut steps = Vec::new();
        while !touches(&world).await.is_empty() {
            steps.push(
                catchword::collection::expand_touches(world.catchword.pool(), "note", if walked { 10 } else { 100 }).await.unwrap().touched,
            );
        }
        assert_eq!(steps, [100, 100, 50]);
        settle(&world).await;
    }
    // two at once, while they fit into one step
    assert_eq!(change(&world, "update tag set name = name || '?'").await.touched, 250);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_waits_for_touches_of_every_shape() {
    let world = notes(
        "create table tag (id bigint primary key, name text); create table note_tag (tag_id bigint, note_id bigint, primary key (tag_id, note_id));
         create table label (tenant bigint, code text, name text, primary key (tenant, code));
         create table note (id bigint primary key, tenant bigint, label text, labels text[], catchword_revision bigint)",
        "json_build_array((select t.name from note_tag nt join tag t on t.id = nt.tag_id where nt.note_id = n.id limit 1), (select l.name from label l where l.tenant = n.tenant and l.code = n.label))",
        "touches = [{ table = \"tag\", column = \"id\", keys = \"select note_id from note_tag where tag_id = any($1)\" },
                    { table = \"label\", column = [\"tenant\", \"code\"], row_column = [\"tenant\", \"label\"] },
                    { table = \"label\", column = \"code\", row_column = \"labels\" }]\nunwatched = [\"note_tag\"]",
    )
    .await;
    world.sql("insert into tag values (1, 'a'); insert into label values (1, 'x', 'X'); insert into note_tag values (1, 1), (1, 9)").await;
    world.sql("insert into note values (1, null, null, null), (2, 1, 'x', null), (3, null, null, '{x}'), (4, 2, 'x', null)").await;
    settle(&world).await;
    let soon = "select catchword.touched_soon('note', array['1', '2', '3', '4'])";
    assert_eq!(world.one::<Vec<String>>(soon).await, [""; 0]);
    world.sql("update tag set name = 'b'").await;
    assert_eq!(world.one::<Vec<String>>(soon).await, ["1"]);
    world.sql("delete from catchword.job; update label set name = 'Y'").await;
    let mut found: Vec<String> = world.one(soon).await;
    found.sort();
    assert_eq!(found, ["2", "3"]);
    world.sql("update tag set name = 'c'").await;
    settle(&world).await;
}

const LOG: &str =
    "create table visit (id bigint, at date, note_id bigint, what text, seen integer, primary key (id, at)) partition by range (at);
     create table visit_1 partition of visit for values from ('2026-01-01') to ('2026-02-01');
     create table visit_2 (junk text, at date not null, what text, seen integer, id bigint not null, note_id bigint);
     alter table visit_2 drop column junk; alter table visit attach partition visit_2 for values from ('2026-02-01') to ('2026-03-01');
     create index on visit (note_id);
     create table note (id bigint primary key, catchword_revision bigint)";
const LAST: &str = "(select string_agg(v.what, ' ' order by v.id) from visit v where v.note_id = n.id)";
const VISITS: &str = "touches = [{ table = \"visit\", column = \"note_id\", row_column = \"id\", watch = [\"what\"] }]";

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_related_table_is_seen_through_its_parent_and_its_partitions() {
    let world = notes(LOG, LAST, VISITS).await;
    world.sql("insert into note select generate_series(1, 5)").await;
    settle(&world).await;
    for (sql, touched) in [
        ("insert into visit values (1, '2026-01-05', 1, 'a', 0), (2, '2026-02-05', 2, 'b', 0)", 2),
        ("insert into visit_2 (id, at, note_id, what) values (3, '2026-02-06', 3, 'c')", 1),
        ("update visit set seen = 1", 0),
        ("update visit_1 set what = 'a!'", 1),
        // from one partition into the other
        ("update visit set at = '2026-02-07' where id = 1", 1),
        ("update visit_2 set note_id = 4 where id = 3", 2),
        (
            "create table visit_3 partition of visit for values from ('2026-03-01') to ('2026-04-01'); insert into visit_3 values (5, '2026-03-02', 5, 'e', 0)",
            1,
        ),
        ("delete from visit where id = 2", 1),
        ("truncate visit_2", 2),
        ("truncate visit", 1),
    ] {
        let outcome = change(&world, sql).await;
        assert_eq!(outcome.touched, touched, "{sql}: {outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_came_later_lacks_its_truncate_until_migrate() {
    let world = notes(LOG, LAST, VISITS).await;
    world.sql("create table visit_3 partition of visit for values from ('2026-03-01') to ('2026-04-01')").await;
    let (code, said, _) = world.run(&["doctor"]).await;
    assert!(
        code == 0 && said.contains("partitions: the configuration and the database differ") && said.contains("catchword migrate"),
        "{said}"
    );
    let (code, said, errors) = world.run(&["migrate"]).await;
    assert!(code == 0 && said.contains("triggers replaced") && !said.contains("reindex"), "{said}{errors}");
    world.sql("insert into note values (1); insert into visit values (1, '2026-03-05', 1, 'a', 0)").await;
    settle(&world).await;
    assert_eq!(change(&world, "truncate visit_3").await.touched, 1);
    assert!(!world.run(&["doctor"]).await.1.contains("partitions:"));
    // a trigger that somebody switched off in one partition is noticed, and put back
    world.sql("alter table visit_1 disable trigger catchword_note_1_update").await;
    let problems: Vec<String> = world.all("select problem from catchword.broken_triggers('note')").await;
    assert_eq!(problems, ["trigger catchword_note_1_update on public.visit_1 is disabled"]);
    assert_eq!(world.run(&["migrate"]).await.0, 0);
    assert_eq!(world.all::<String>("select problem from catchword.broken_triggers('note')").await, [""; 0]);
    assert_eq!(world.run(&["detach", "note", "--yes"]).await.0, 0);
    world.sql("insert into visit values (9, '2026-01-05', 1, 'a', 0); truncate visit").await;
}

/// Rows that refer to each other in a circle: each change touches once, and that is the end of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_touch_never_touches_on() {
    let world = notes(
        "create table note (id bigint primary key, title text, other bigint, catchword_revision bigint); create index on note (other)",
        "(select o.title from note o where o.id = n.other)",
        "touches = [{ table = \"note\", column = \"id\", row_column = \"other\" }]",
    )
    .await;
    world.sql("insert into note values (1, 'a', 2), (2, 'b', 1), (3, 'c', 3)").await;
    settle(&world).await;
    let outcome = change(&world, "update note set title = 'A' where id = 1").await;
    assert_eq!((outcome.touched, outcome.written), (1, 2), "{outcome}");
    let outcome = change(&world, "update note set title = 'C' where id = 3").await;
    // its own write, and then its touch; or both at once, if the touch came first
    assert!(outcome.touched == 1 && (1..=2).contains(&outcome.written), "{outcome}");
    assert_eq!(world.source("note", "3").await.unwrap()["text"], json!("C"));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_mean_something_to_us_are_names() {
    let world = notes(
        r##"create table label ("e" text, "v" text, "r" text, "changed" text, "tg_op" text, "{value}" text, "problem" text, "c" text, primary key ("e", "v"));
            create table note (id bigint primary key, "a=b" text, "#x" text, "!y" text, "50%3D" text, catchword_revision bigint)"##,
        "(select string_agg(l.c, ' ' order by l.e) from label l where l.e in (n.\"a=b\", n.\"#x\", n.\"!y\", n.\"50%3D\"))",
        r##"touches = [{ table = "label", column = "e", row_column = "a=b", watch = ["c"] }, { table = "label", value = "e || ''", row_column = "#x", watch = ["c", "changed", "{value}"] },
            { table = "label", value = "case when tg_op is null and problem is null and changed is null then e end", row_column = "!y" }, { table = "label", column = "e", row_column = '"50%3D"' }]"##,
    )
    .await;
    world.sql("insert into label (e, v, c) values ('1', '', 'one'), ('2', '', 'two'), ('3', '', 'three'), ('4', '', 'four')").await;
    world.sql("insert into note values (1, '1', null, null, null), (2, null, '2', null, null), (3, null, null, '3', null), (4, null, null, null, '4')").await;
    settle(&world).await;
    let outcome = change(&world, "update label set c = c || '!'").await;
    assert_eq!(outcome.touched, 4, "{outcome}");
}

/// A setting costs each writer some microseconds. So a trigger sets none where none can change the text of its values, and all of them
/// where that is not certain.
#[tokio::test(flavor = "multi_thread")]
async fn only_where_a_setting_could_change_a_value_is_one_set() {
    let world = World::new().await;
    world.sql("create table other (id uuid primary key, day date, n integer, f float8, word text, \"Words (1)\" text[], raw bytea)").await;
    for (value, is_one_text) in [
        ("id", true),
        ("word || '@' || n::text", true),
        ("\"Words (1)\"[1]", true),
        ("case when word is not null then 'a(b)::date' || word end", true),
        ("day::text", false),
        ("(f * 2)::text", false),
        ("raw", false),
        ("lower(word)", false),
        ("word || current_date", false),
        ("(word::date)::text", false),
        ("case when n > 1 then word end", false),
    ] {
        let made: bool = sqlx::query_scalar(
            "select catchword.is_one_text('other', jsonb_build_object('made', catchword.make_touch(
               'annotation', '{id}', jsonb_build_object('table', 'public.other', 'value', $1::text, 'row_column', 'userid'), 'public')))",
        )
        .bind(value)
        .fetch_one(&world.pool)
        .await
        .unwrap();
        assert_eq!(made, is_one_text, "{value}");
    }
    // the example's own: a reply names its thread by a uuid
    let settings: Vec<String> =
        world.all("select unnest(proconfig) from pg_proc where oid = 'catchword.annotation_touch_2'::regproc order by 1").await;
    assert!(!settings.iter().any(|set| set.starts_with("TimeZone") || set.starts_with("lc_monetary")), "{settings:?}");
    let settings: Vec<String> =
        world.all("select unnest(proconfig) from pg_proc where oid = 'catchword.annotation_touch_2_insert'::regproc").await;
    assert_eq!(settings, ["search_path=pg_catalog, pg_temp"], "each insert pays for more");
}
