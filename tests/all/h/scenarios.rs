//! Create, reply, moderation, title, group change, NIPSA, bulk update, rename, soft delete, purge of a user, document merge, purge of a
//! reply.

use serde_json::json;

use super::{cost, settle, short, world};
use crate::common::World;

/// Keys that can be read: the n-th note.
fn key(n: u32) -> String {
    format!("00000000-0000-0000-0000-{n:012}")
}

async fn field(world: &World, n: u32, name: &str) -> serde_json::Value {
    world.source("h", &short(&key(n))).await.unwrap()[name].clone()
}

/// Three members and two pages; a thread of note 1 with the replies 2 and 3 of another member, note 4 alone, note 5 on the other page.
async fn thread() -> World {
    let world = world().await;
    world.sql("insert into h.page (title, web_uri) values ('One', 'http://one/'), ('Two', 'http://two/')").await;
    world
        .sql("insert into h.member (username, authority) values ('mina', 'hypothes.is'), ('otto', 'hypothes.is'), ('ida', 'partner.org')")
        .await;
    for (n, user, references, page) in [
        (1, "mina@hypothes.is", "{}".to_owned(), 1),
        (2, "otto@hypothes.is", format!("{{{}}}", key(1)), 1),
        (3, "otto@hypothes.is", format!("{{{},{}}}", key(1), key(2)), 1),
        (4, "mina@hypothes.is", "{}".to_owned(), 1),
        (5, "ida@partner.org", "{}".to_owned(), 2),
    ] {
        let note = format!(
            "insert into h.note (id, userid, \"references\", page_id, tags, target) values ('{}', 'acct:{user}', '{references}', {page}, '{{a,b}}', '[{{\"source\": 1}}]')",
            key(n)
        );
        world.sql(&note).await;
    }
    settle(&world).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn create() {
    let world = thread().await;
    // the page's own time moves with every note
    let note = format!(
        "begin; update h.page set updated = now() where id = 1; insert into h.note (id, userid, page_id) values ('{}', 'acct:mina@hypothes.is', 1); update h.member set last_login = now() where id = 1; commit",
        key(6)
    );
    assert_eq!(cost(&world, &note).await, (0, 1));
    assert_eq!(field(&world, 6, "page").await["title"], json!("One"));
}

#[tokio::test(flavor = "multi_thread")]
async fn reply() {
    let world = thread().await;
    let reply = |n: u32, to: &str| {
        format!("insert into h.note (id, userid, page_id, \"references\") values ('{}', 'acct:ida@partner.org', 1, '{{{to}}}')", key(n))
    };
    assert_eq!(cost(&world, &reply(6, &key(1))).await, (1, 2), "the reply, and the note that it answers");
    assert_eq!(field(&world, 1, "thread_ids").await, json!([short(&key(2)), short(&key(3)), short(&key(6))]));
    // an answer to an answer is shown by the first note of the thread alone
    assert_eq!(cost(&world, &reply(7, &format!("{},{}", key(1), key(2)))).await, (1, 2));
    assert_eq!(field(&world, 2, "thread_ids").await, json!([]));
    assert_eq!(cost(&world, &reply(8, &key(99))).await, (0, 1), "to a note that is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn moderation() {
    let world = thread().await;
    let deny = format!("update h.note set moderation = 'denied', updated = now() where id = '{}'", key(2));
    assert_eq!(cost(&world, &deny).await, (0, 1));
    assert_eq!(field(&world, 2, "hidden").await, json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn title() {
    let world = thread().await;
    assert_eq!(cost(&world, "update h.page set title = 'Uno', updated = now() where id = 1").await, (4, 4));
    assert_eq!(field(&world, 3, "page").await["title"], json!("Uno"));
    assert_eq!(cost(&world, "update h.page set title = 'Uno', updated = now()").await, (1, 1), "one of them had that title already");
    assert_eq!(cost(&world, "update h.page set updated = now()").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn group_change() {
    let world = thread().await;
    let moved = format!("update h.note set groupid = 'team' where id = '{0}' or \"references\"[1] = '{0}'", key(1));
    assert_eq!(cost(&world, &moved).await, (0, 3));
    assert_eq!(field(&world, 3, "group").await, json!("team"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nipsa() {
    let world = thread().await;
    assert_eq!(cost(&world, "update h.member set nipsa = true where username = 'otto'").await, (2, 2));
    assert_eq!(field(&world, 2, "nipsa").await, json!(true));
    assert_eq!(cost(&world, "update h.member set last_login = now()").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn bulk_update() {
    let world = thread().await;
    world.sql("insert into h.note (userid, page_id) select 'acct:ida@partner.org', 2 from generate_series(1, 1500)").await;
    settle(&world).await;
    assert_eq!(cost(&world, "update h.note set tags = tags || 'moved'::text where page_id = 2").await, (0, 1501));
}

#[tokio::test(flavor = "multi_thread")]
async fn rename() {
    let world = thread().await;
    let rename = "begin; update h.member set username = 'wilhelmina' where username = 'mina'; update h.note set userid = 'acct:wilhelmina@hypothes.is' where userid = 'acct:mina@hypothes.is'; commit";
    world.sql(rename).await;
    // which comes first is nobody's promise; here a member has their name now before their own change is written, which then shows both
    assert_eq!(world.one::<i32>("select touched from catchword.expand_touches('h', 1000)").await, 2);
    assert_eq!(cost(&world, "select 1").await, (0, 2));
    assert_eq!(field(&world, 4, "user").await, json!("acct:wilhelmina@hypothes.is"));
}

#[tokio::test(flavor = "multi_thread")]
async fn soft_delete() {
    let world = thread().await;
    let delete = format!("update h.note set deleted = true, updated = now() where id = '{}'", key(3));
    assert_eq!(cost(&world, &delete).await, (1, 2), "its tombstone, and the note that showed it");
    assert_eq!(field(&world, 1, "thread_ids").await, json!([short(&key(2))]));
    // and back again
    assert_eq!(cost(&world, &delete.replace("deleted = true", "deleted = false")).await, (1, 2));
    assert_eq!(field(&world, 1, "thread_ids").await, json!([short(&key(2)), short(&key(3))]));
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_of_a_user() {
    let world = thread().await;
    let purge = "begin; delete from h.note where userid = 'acct:otto@hypothes.is'; delete from h.member where username = 'otto'; commit";
    assert_eq!(cost(&world, purge).await, (1, 3), "two tombstones, and the note that they answered");
    assert_eq!(field(&world, 1, "thread_ids").await, json!([]));
    // of somebody whose own note had answers: these stay
    let purge = "begin; delete from h.note where userid = 'acct:mina@hypothes.is'; delete from h.member where username = 'mina'; commit";
    assert_eq!(cost(&world, purge).await, (0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn document_merge() {
    let world = thread().await;
    let merge = "begin; update h.note set page_id = 2 where page_id = 1; delete from h.page where id = 1; update h.page set updated = now() where id = 2; commit";
    assert_eq!(cost(&world, merge).await, (0, 4));
    assert_eq!(field(&world, 1, "page").await["title"], json!("Two"));
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_of_a_reply() {
    let world = thread().await;
    world.sql(&format!("update h.note set deleted = true where id = '{}'", key(3))).await;
    settle(&world).await;
    // it was gone from the thread already; its tombstone gets the number of the delete
    assert_eq!(cost(&world, &format!("delete from h.note where id = '{}'", key(3))).await, (0, 1));
    // without the soft delete before it
    assert_eq!(cost(&world, &format!("delete from h.note where id = '{}'", key(2))).await, (1, 2));
    assert_eq!(field(&world, 1, "thread_ids").await, json!([]));
}
