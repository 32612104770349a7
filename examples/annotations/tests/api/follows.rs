//! One statement of SQL, from psql or anywhere else, and search follows.

use serde_json::json;

use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_user_is_found_by_the_new_name_and_no_longer_by_the_old_one() {
    let world = World::new().await;
    let a = world.save(json!({ "userid": "acct:maiden@test" })).await;
    let b = world.save(json!({ "userid": "acct:maiden@test" })).await;
    let other = world.save(json!({ "userid": "acct:other@test" })).await;
    world.finds("user=acct:maiden@test", &[&b, &a]).await;

    world.sql("update annotation set userid = 'acct:married@test' where userid = 'acct:maiden@test'").await;
    world.settle_everything().await;

    world.finds("user=acct:married@test", &[&b, &a]).await;
    world.finds("user=acct:maiden@test", &[]).await;
    world.finds("user=acct:other@test", &[&other]).await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_user_is_found_no_more() {
    let world = World::new().await;
    world.save(json!({ "userid": "acct:leaving@test" })).await;
    let soft = world.save(json!({ "userid": "acct:leaving@test" })).await;
    let kept = world.save(json!({ "userid": "acct:staying@test" })).await;
    // one of them was deleted softly before: the row goes too
    assert_eq!(world.send("DELETE", &format!("/api/annotations/{soft}"), None).await.status, 200);
    world.settle_everything().await;

    world.sql("delete from annotation where userid = 'acct:leaving@test'").await;
    world.settle_everything().await;

    world.finds("user=acct:leaving@test", &[]).await;
    world.finds("user=acct:staying@test", &[&kept]).await;
    assert_eq!(world.send("GET", &format!("/api/annotations/{soft}"), None).await.status, 404);
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_before_its_first_pass_leaves_nothing_in_the_index() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    world.sql(&format!("delete from annotation where id = '{id}'")).await;
    world.settle_everything().await;
    world.finds("user=acct:mina@test", &[]).await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_group_is_found_where_it_went() {
    let world = World::new().await;
    let a = world.save(json!({ "groupid": "old" })).await;
    let b = world.save(json!({ "groupid": "old", "userid": "acct:other@test" })).await;
    let there = world.save(json!({ "groupid": "new" })).await;

    world.sql("update annotation set groupid = 'new' where groupid = 'old'").await;
    world.settle_everything().await;

    world.finds("group=new", &[&there, &b, &a]).await;
    world.finds("group=old", &[]).await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_title_reaches_every_annotation_of_the_page() {
    let world = World::new().await;
    let page = json!({ "title": "Wallabies" });
    let a = world.save(json!({ "document": page })).await;
    let b = world.save(json!({ "userid": "acct:other@test" })).await;
    let elsewhere = world.save(json!({ "target_uri": "https://test.example/elsewhere", "document": page })).await;
    world.finds("q=wallabies", &[&elsewhere, &b, &a]).await;

    world.sql("update document set title = 'Bandicoots' where web_uri = 'https://test.example/page'").await;
    world.settle_everything().await;

    world.finds("q=bandicoots", &[&b, &a]).await;
    world.finds("q=wallabies", &[&elsewhere]).await;
    world.both_sides_agree().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soft_delete_is_found_no_more_and_a_restored_row_is_found_again() {
    let world = World::new().await;
    let id = world.save(json!({})).await;
    world.finds("user=acct:mina@test", &[&id]).await;
    world.sql("update annotation set deleted = true where userid = 'acct:mina@test'").await;
    world.settle_everything().await;
    world.finds("user=acct:mina@test", &[]).await;
    world.sql("update annotation set deleted = false where userid = 'acct:mina@test'").await;
    world.settle_everything().await;
    world.finds("user=acct:mina@test", &[&id]).await;
    world.both_sides_agree().await;
}
