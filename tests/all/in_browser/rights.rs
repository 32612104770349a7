//! Who may do what, as the pages show it and as the server holds it.

use serde_json::Value;

use super::desk::{Desk, make_key};

/// Everything that changes something, with a form that would do.
const ACTS: [(&str, &str); 16] = [
    ("pause", "collection=annotation&reason=x"),
    ("resume", "collection=annotation"),
    ("replay", "collection=annotation"),
    ("discard", "collection=annotation&typed=annotation"),
    ("look-again", "collection=annotation&key=00000000-0000-0000-0000-000000000000"),
    ("reindex", "collection=annotation&by=all"),
    ("pause-reindex", "id=1"),
    ("resume-reindex", "id=1"),
    ("rate-reindex", "id=1&rate=1"),
    ("cancel-reindex", "id=1"),
    ("audit", "collection=annotation"),
    ("repair", "collection=annotation"),
    ("stop-audit", "collection=annotation&id=1"),
    ("rebuild", "collection=annotation"),
    ("back", "collection=annotation"),
    ("abort", "collection=annotation"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_no_button_and_is_refused_if_it_posts() {
    let desk = Desk::of("reader").await;
    let (browser, world) = (&desk.browser, &desk.world);
    world.sql("insert into catchword.dead_job (id, name, collection, key, tag, attempts, reason, last_error, enqueued_at, scheduled_at, expires_at, priority, died_at) values (nextval('catchword.job_id_seq'), 'index', 'annotation', 'x', 'test', 5, 'refused', 'no', now(), now(), now() + interval '30 days', 1, now())").await;
    let key = world.in_step("acct:mina@x", "text").await;
    let pages = ["/", "/collections/annotation", "/dead", "/dead?collection=annotation", "/reindexes", "/audits", "/rebuilds", "/journal"];
    for page in pages.into_iter().map(str::to_owned).chain([format!("/key?collection=annotation&key={key}")]) {
        browser.open(&page).await;
        assert!(!browser.has("main a[href*='/do/'], main form, main a[href*='/reindexes/new']").await, "{page} has a button");
    }
    let before: i64 = world.one("select count(*) from catchword.journal").await;
    for (act, form) in ACTS {
        let post = format!(
            "return fetch('/do/{act}', {{ method: 'POST', redirect: 'manual', headers: {{ 'content-type': 'application/x-www-form-urlencoded' }}, body: '{form}' }}).then((answer) => answer.status)"
        );
        assert_eq!(browser.script(&post).await, Value::from(403), "{act} was posted by a reader");
        browser.open(&format!("/do/{act}?{form}")).await;
        browser.see("main", "needs the role").await;
    }
    assert_eq!(world.one::<i64>("select count(*) from catchword.journal").await, before);
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_not_rebuild_and_is_not_shown_the_button() {
    let desk = Desk::of("operator").await;
    desk.browser.open("/collections/annotation").await;
    assert!(desk.browser.offers("Pause").await && desk.browser.offers("Reindex").await);
    assert!(!desk.browser.offers("Rebuild").await);
    desk.browser.open("/do/rebuild?collection=annotation").await;
    desk.browser.see("main", "needs the role admin").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_some_collections_sees_nothing_of_the_others() {
    let desk = Desk::with(crate::common::World::with(super::desk::layout()).await, super::browser::Scripts::On).await;
    let (browser, world) = (&desk.browser, &desk.world);
    for collection in ["annotation", "bystander"] {
        world.sql(&format!("insert into catchword.dead_job (id, name, collection, key, tag, attempts, reason, last_error, enqueued_at, scheduled_at, expires_at, priority, died_at) values (nextval('catchword.job_id_seq'), 'index', '{collection}', 'x', 'test', 5, 'refused', 'no', now(), now(), now() + interval '30 days', 1, now())")).await;
    }
    let other: i64 = world.one("select id from catchword.dead_job where collection = 'bystander'").await;
    let key = make_key(world, &["some", "--role", "operator", "--collections", "annotation"]).await;
    browser.open("/sign-in").await;
    browser.fill("#key", &key).await;
    browser.press("Sign in").await;
    browser.see(".who", "some").await;
    for page in ["/", "/dead", "/checks", "/journal", "/audits", "/rebuilds", "/reindexes", "/doctor", "/collections/annotation"] {
        browser.open(page).await;
        let source = browser.source().await;
        assert!(source.contains("annotation") && !source.contains("bystander"), "{page} names the other one");
    }
    for page in ["/collections/bystander", "/dead?collection=bystander", "/journal?collection=bystander", "/do/pause?collection=bystander"]
    {
        browser.open(page).await;
        browser.see("main", "no such collection").await;
    }
    for page in [format!("/dead/letter/{other}"), format!("/dead/group/{other}")] {
        browser.open(&page).await;
        browser.see("main", "no dead letter").await;
    }
}
