//! The page is needed most when a server is down.

use crate::common::{Gate, World};

use super::browser::{Browser, Scripts};
use super::desk::{Server, layout, make_key};

#[tokio::test(flavor = "multi_thread")]
async fn while_postgres_is_down_the_page_shows_what_was_known_and_since_when() {
    let world = World::with(layout()).await;
    let _worker = crate::common::start(&world).await;
    let mut url = url::Url::parse(&world.database_url).unwrap();
    let gate = Gate::before(&format!("http://{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432))).await;
    url.set_port(url::Url::parse(&gate.url).unwrap().port()).unwrap();
    let server = Server::launch(world.binary().env("DATABASE_URL", url.as_str()), &[]).await;
    let browser = Browser::start(&server.url, Scripts::On).await;
    let key = make_key(&world, &["mina", "--role", "operator"]).await;
    browser.open("/sign-in").await;
    browser.fill("#key", &key).await;
    browser.press("Sign in").await;
    browser.see(".hero h1", "In step").await;
    browser.see(".collections", "annotation").await;
    let documents = browser.text(".collections td.index").await;
    gate.refuse();
    world
        .sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
        .await;
    browser.see(".hero h1", "Not known").await;
    browser.see("[data-live=downs]", "Postgres does not answer since").await;
    browser.see("[data-live=downs]", "Below is what was known at").await;
    // what was known is shown as old, and nothing can be done with it
    assert!(browser.has(".is-old .collections").await);
    assert_eq!(browser.text(".collections td.index").await, documents);
    browser.open("/collections/annotation").await;
    browser.see("main", "Postgres does not answer").await;
    assert!(!browser.has("main a[href*='/do/']").await);
    gate.pass();
    browser.open("/").await;
    browser.see(".hero h1", "In step").await;
    assert!(!browser.has(".is-old").await);
}
