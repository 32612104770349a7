//! Without a script, with a keyboard, and without anybody else's host.

use std::collections::BTreeSet;

use crate::common::{World, eventually};

use super::browser::Scripts;
use super::desk::{Desk, Server, layout};

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_without_a_script() {
    let desk = Desk::with(World::with(layout()).await, Scripts::Off).await;
    let (browser, world) = (&desk.browser, &desk.world);
    desk.sign_in("mina", "operator").await;
    browser.open("/").await;
    browser.see(".hero h1", "In step").await;
    // it is renewed by the browser itself
    assert!(browser.source().await.contains("http-equiv=\"refresh\""));
    browser.press("annotation").await;
    browser.see("main h1", "annotation").await;
    assert!(browser.has("svg.graph").await);
    browser.press("Pause").await;
    browser.fill("[name=reason]", "no script").await;
    browser.click("main button.first").await;
    browser.see("[role=status]", "paused").await;
    assert_eq!(world.one::<String>("select reason from catchword.pause where collection = 'annotation'").await, "no script");
    let key = world.annotate("acct:mina@x", "text").await;
    browser.fill("#find-key", &key).await;
    browser.press("Explain").await;
    eventually("the key is explained", async || browser.page().await.contains("missing")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyboard_is_enough_and_the_focus_is_seen() {
    let desk = Desk::of("operator").await;
    let browser = &desk.browser;
    browser.open("/").await;
    browser.see("#renewed", "renewed").await;
    browser.keys("\u{e004}").await;
    let focused = browser.script("return document.activeElement.className").await;
    assert_eq!(focused, "skip", "the first stop leads past the head of the page");
    let outline = browser.script("const s = getComputedStyle(document.activeElement); return s.outlineStyle + ' ' + s.outlineWidth").await;
    assert_eq!(outline, "solid 2px");
    browser.keys("\u{e007}").await;
    assert_eq!(browser.script("return document.activeElement.id").await, "main");
    // whatever can be reached has a name, and every field its label
    let nameless = "return [...document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea')].filter((e) =>
        !(e.innerText.trim() || e.ariaLabel || e.title || e.labels?.length || e.querySelector('[aria-label], img[alt]:not([alt=\"\"])'))).map((e) => e.outerHTML)";
    for page in
        ["/", "/collections/annotation", "/reindexes/new?collection=annotation", "/do/pause?collection=annotation", "/dead", "/sign-in"]
    {
        browser.open(page).await;
        let found = browser.script(nameless).await;
        assert_eq!(found.as_array().unwrap().len(), 0, "{page}: {found}");
    }
    // a number keeps the focus when it is renewed
    browser.open("/").await;
    browser.script("document.querySelector('[data-number=annotation-due]').focus()").await;
    desk.world.sql("insert into catchword.pause (collection, by, reason) values ('annotation', 'x', 'y')").await;
    desk.world.annotate("acct:mina@x", "text").await;
    browser.see("[data-number=annotation-due]", "1").await;
    assert_eq!(browser.script("return document.activeElement.dataset.number").await, "annotation-due");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_leaves_the_host_and_the_files_are_kept() {
    let desk = Desk::of("operator").await;
    let (browser, world) = (&desk.browser, &desk.world);
    browser.asked_for().await;
    for page in
        ["/", "/collections/annotation", "/dead", "/reindexes", "/audits", "/rebuilds", "/journal", "/checks", "/doctor", "/sign-in"]
    {
        browser.open(page).await;
    }
    let asked: BTreeSet<String> = browser.asked_for().await.into_iter().filter(|url| url.starts_with("http")).collect();
    assert!(asked.len() > 10, "{asked:?}");
    assert!(asked.iter().all(|url| url.starts_with(&desk.server.url)), "{asked:?}");
    let style = asked.iter().find(|url| url.ends_with(".css")).unwrap();
    let answer = world.client.get(style).send().await.unwrap();
    assert_eq!(answer.headers()["cache-control"], "public, max-age=31536000, immutable");
    // another name has nothing, so that an old page never gets a new stylesheet
    let other = world.client.get(format!("{}/assets/console-0000000000000000.css", desk.server.url)).send().await.unwrap();
    assert_eq!(other.status().as_u16(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_base_path_every_link_and_form_keeps_it() {
    let mut desk = Desk::with(World::with(layout()).await, Scripts::On).await;
    desk.server = Server::start(&desk.world, &["--base-path", "/cw"]).await;
    desk.browser.home = format!("{}/cw", desk.server.url);
    desk.sign_in("mina", "operator").await;
    let browser = &desk.browser;
    for page in
        ["/", "/collections/annotation", "/dead", "/reindexes", "/reindexes/new?collection=annotation", "/audits", "/rebuilds", "/checks"]
    {
        browser.open(page).await;
        let outside = browser
            .script("return [...document.querySelectorAll('[href], [src], [action], [data-renew]')].map((e) => e.getAttribute('href') ?? e.getAttribute('src') ?? e.getAttribute('action') ?? e.dataset.renew).filter((to) => !to.startsWith('/cw/') && !to.startsWith('#'))")
            .await;
        assert_eq!(outside.as_array().unwrap().len(), 0, "{page}: {outside}");
    }
    browser.open("/collections/annotation").await;
    browser.press("Pause").await;
    browser.fill("[name=reason]", "behind a proxy").await;
    browser.click("main button.first").await;
    browser.see("[role=status]", "paused").await;
}
