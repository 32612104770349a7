//! What somebody on call does at night.

use crate::common::eventually;

use super::browser::Scripts;
use super::desk::{Desk, Server, layout, make_key};
use crate::common::World;

#[tokio::test(flavor = "multi_thread")]
async fn one_signs_in_with_a_key_and_a_wrong_one_is_refused() {
    let desk = Desk::with(World::with(layout()).await, Scripts::On).await;
    let browser = &desk.browser;
    browser.open("/dead?collection=annotation").await;
    assert!(browser.place().await.starts_with("/sign-in"), "{}", browser.place().await);
    browser.fill("#key", "cwk_wrong").await;
    browser.press("Sign in").await;
    browser.see("[role=alert]", "Not signed in").await;
    let key = make_key(&desk.world, &["mina", "--role", "operator"]).await;
    browser.fill("#key", &key).await;
    browser.press("Sign in").await;
    browser.see(".who", "mina").await;
    // one comes to where one wanted to go
    assert_eq!(browser.place().await, "/dead?collection=annotation");
    assert!(browser.text(".who").await.contains("operator"));
    browser.press("Sign out").await;
    browser.see("main", "API key").await;
    browser.open("/").await;
    assert!(browser.place().await.starts_with("/sign-in"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_appears_on_the_screen_and_goes_again_without_a_reload() {
    let desk = Desk::of("operator").await;
    let browser = &desk.browser;
    browser.open("/").await;
    browser.see(".hero h1", "In step").await;
    browser.script("window.sameTab = true").await;
    let gate = desk.world.gate.as_ref().unwrap();
    gate.refuse();
    browser.see(".hero h1", "Not well").await;
    browser.see("[data-live=downs]", "Elasticsearch does not answer since").await;
    browser.see("[data-live=downs]", "Writes to Postgres go on").await;
    // nobody can judge a collection now
    browser.see("[data-live=collections]", "not known").await;
    assert!(!browser.text("[data-live=collections]").await.contains("in step"));
    // what to do is one click away
    assert!(browser.offers("What to do").await);
    // a write goes on, and waits
    desk.world.annotate("acct:mina@x", "saved in the dark").await;
    eventually("its job is due, or put off", async || {
        let shown = [browser.text("[data-number=annotation-due]").await, browser.text("[data-number=annotation-waiting]").await];
        shown.contains(&"1".to_owned())
    })
    .await;
    gate.pass();
    browser.see(".hero h1", "In step").await;
    browser.see(".hero h1", "since").await;
    eventually("the banner goes", async || browser.text("[data-live=downs]").await.is_empty()).await;
    assert_eq!(browser.script("return window.sameTab").await, true);
    let complaints: Vec<String> = browser.complaints().await.into_iter().filter(|said| !said.contains("favicon")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_server_goes_the_page_says_since_when_it_is_old() {
    let mut desk = Desk::of("reader").await;
    desk.browser.open("/").await;
    desk.browser.see("#renewed", "renewed").await;
    let gone = std::mem::replace(&mut desk.server, Server::start(&desk.world, &[]).await);
    drop(gone);
    desk.browser.see("#renewed", "Not renewed since").await;
    // what was known is still there, and looks old
    assert!(desk.browser.has(".is-stale .collections").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_found_understood_and_replayed() {
    let desk = Desk::of("operator").await;
    let (browser, world) = (&desk.browser, &desk.world);
    let key = world.in_step("acct:mina@x", "given up").await;
    world.sql(&format!("insert into catchword.job (name, collection, key, tag, priority, scheduled_at) values ('index', 'annotation', '{key}', 'test', 1, now() + interval '1 hour')")).await;
    let (code, _, err) = world.run(&["dead", "bury", "annotation", &key, "--why", "it cannot be parsed", "--yes"]).await;
    assert_eq!(code, 0, "{err}");
    browser.open("/").await;
    browser.see("[data-number=annotation-dead]", "1").await;
    browser.click("[data-number=annotation-dead]").await;
    browser.see("main", "it cannot be parsed").await;
    browser.press("Keys").await;
    browser.see("main table", &key).await;
    browser.press("Replay these").await;
    browser.see("main", "1 dead letter").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 1, "nothing is done before it is confirmed");
    browser.click("main button.first").await;
    browser.see("[role=status]", "1 dead letter scheduled again").await;
    eventually("the letter is gone", async || world.one::<i64>("select count(*) from catchword.dead_job").await == 0).await;
    let (who, what, count): (String, String, i64) =
        sqlx::query_as("select who, what, count from catchword.journal order by id desc limit 1").fetch_one(&world.pool).await.unwrap();
    assert!(who.ends_with("(mina)"), "the role of the database, and who it was: {who}");
    assert_eq!((what.as_str(), count), ("replay", 1));
    browser.open("/journal").await;
    browser.see("main table", "mina").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_discarded_only_by_whoever_types_the_name() {
    let desk = Desk::of("operator").await;
    let (browser, world) = (&desk.browser, &desk.world);
    world.sql("insert into catchword.dead_job (id, name, collection, key, tag, attempts, reason, last_error, enqueued_at, scheduled_at, expires_at, priority, died_at) values (nextval('catchword.job_id_seq'), 'index', 'annotation', 'x', 'test', 5, 'refused', 'no', now(), now(), now() + interval '30 days', 1, now())").await;
    browser.open("/dead?collection=annotation").await;
    browser.press("Discard all of them").await;
    browser.fill("[name=typed]", "bystander").await;
    browser.click("main button.first").await;
    browser.see("main", "nothing was discarded").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 1);
    browser.open("/dead?collection=annotation").await;
    browser.press("Discard all of them").await;
    browser.fill("[name=typed]", "annotation").await;
    browser.click("main button.first").await;
    browser.see("[role=status]", "1 dead letter deleted for good").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.dead_job").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_reindexed_after_a_dry_run() {
    let desk = Desk::of("operator").await;
    let (browser, world) = (&desk.browser, &desk.world);
    for n in 0..7 {
        world.annotate("acct:otto@x", &format!("note {n}")).await;
    }
    eventually("all of it is settled", async || world.jobs().await == 0).await;
    browser.open("/do/reindex?collection=annotation&by=scope&scope=user&value=acct%3Anobody%40x").await;
    browser.see("main", "Nothing matches").await;
    assert!(!browser.offers("Reindex 0").await && !browser.has("main button[type=submit]").await, "there is nothing to press");
    browser.open("/collections/annotation").await;
    browser.press("Reindex…").await;
    browser.script("document.querySelector('#f-scope').value = 'user'").await;
    browser.fill("#f-value", "acct:otto@x").await;
    browser.press("Try it").await;
    browser.see("main .big", "7 keys").await;
    browser.see("main", "About").await;
    assert_eq!(world.one::<i64>("select count(*) from catchword.reindex").await, 0, "a dry run changes nothing");
    browser.press("Reindex 7 keys").await;
    browser.see("main h1", "user acct:otto@x").await;
    // the page renews itself until it is over
    browser.see("[data-live=title]", "finished").await;
    browser.see("[data-number=settled]", "7").await;
    let by: String = world.one("select started_by from catchword.reindex").await;
    assert!(by.contains("mina"), "{by}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_explained_from_any_page() {
    let desk = Desk::of("operator").await;
    let (browser, world) = (&desk.browser, &desk.world);
    let key = world.in_step("acct:mina@x", "secret words").await;
    browser.open("/journal").await;
    browser.script("document.querySelector('#find-collection').value = 'annotation'").await;
    browser.fill("#find-key", &key).await;
    browser.keys("\u{e007}").await;
    browser.see(".hero h1", "In step").await;
    let page = browser.page().await;
    assert!(page.contains("Postgres") && page.contains("Elasticsearch") && page.contains("both sides agree"), "{page}");
    assert!(page.contains(&format!("catchword explain annotation {key}")), "{page}");
    // bodies are shown only where the server was told to
    assert!(!browser.source().await.contains("secret words"));
    let open = Server::start(world, &["--open", "--show-documents"]).await;
    let body = world.client.get(format!("{}/key?collection=annotation&key={key}", open.url)).send().await.unwrap().text().await.unwrap();
    assert!(body.contains("secret words"));
    // a mistyped key is answered where the next try is made
    browser.open("/key?collection=annotation&key=none").await;
    browser.see("main", "cannot be a key").await;
    assert_eq!(browser.attribute("#find-key", "value").await, "none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_has_a_reason_and_ends_with_a_button() {
    let desk = Desk::of("operator").await;
    let browser = &desk.browser;
    browser.open("/collections/annotation").await;
    browser.press("Pause").await;
    browser.fill("[name=reason]", "the mapping is being changed").await;
    browser.click("main button.first").await;
    browser.see("[role=status]", "paused").await;
    browser.open("/").await;
    browser.see(".collections", "the mapping is being changed").await;
    browser.see(".collections", "mina").await;
    browser.open("/collections/annotation").await;
    browser.press("Resume").await;
    browser.click("main button.first").await;
    browser.see("[role=status]", "goes on").await;
    assert_eq!(desk.world.one::<i64>("select count(*) from catchword.pause").await, 0);
}
