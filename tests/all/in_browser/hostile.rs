//! Keys, errors, tags and names come from outside and may hold anything.

use super::desk::Desk;

/// What a page must never run, end, move or turn.
const SCRIPT: &str = "<script>window.broken = 1</script>";
const QUOTES: &str = "\"><img src=x onerror=window.broken=1>'";
const CONTROL: &str = "a\u{1b}[2Jb\u{7}c\r\nd\u{202e}e\u{feff}";

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_are_escaped_cut_and_made_visible_wherever_they_are_shown() {
    let desk = Desk::of("operator").await;
    let (browser, world) = (&desk.browser, &desk.world);
    // a bystander's keys are numbers, so what is no number is its dead letter's key only
    let long = format!("{SCRIPT}{}", "long ".repeat(2_000));
    for (n, text) in [SCRIPT, QUOTES, CONTROL, &long, "{{ 7 * 7 }} ${window.broken=1} javascript:window.broken=1"].iter().enumerate() {
        let insert = "insert into catchword.dead_job (id, name, collection, key, tag, attempts, reason, last_error, enqueued_at, scheduled_at, expires_at, priority, died_at)
                      values (nextval('catchword.job_id_seq'), 'index', 'annotation', $1, $2, 5, 'refused', $3, now(), now(), now() + interval '30 days', 1, now())";
        let key = format!("{n}{}", text.chars().take(400).collect::<String>());
        sqlx::query(insert).bind(key).bind(text.chars().take(100).collect::<String>()).bind(*text).execute(&world.pool).await.unwrap();
        let insert = "insert into catchword.journal (who, what, collection, detail, count) values ($1, 'pause', 'annotation', $1, 1)";
        sqlx::query(insert).bind(*text).execute(&world.pool).await.unwrap();
    }
    world
        .sql("insert into catchword.pause (collection, by, reason) values ('bystander', '<b>x</b>', '<script>window.broken = 1</script>')")
        .await;
    let ids: Vec<i64> = world.all("select id from catchword.dead_job order by id").await;
    let typed: String = url::form_urlencoded::byte_serialize(QUOTES.as_bytes()).collect();
    let mut pages: Vec<String> =
        ["/", "/dead", "/journal", "/checks", "/collections/annotation", "/collections/bystander"].map(str::to_owned).to_vec();
    pages.push(format!("/key?collection=annotation&key={typed}"));
    pages.push(format!("/collections/{typed}"));
    pages.push(format!("/dead?collection=annotation&did={typed}&n={typed}"));
    for id in &ids {
        pages.extend([format!("/dead/letter/{id}"), format!("/dead/group/{id}"), format!("/do/replay?collection=annotation&example={id}")]);
        pages.push(format!("/do/discard?collection=annotation&id={id}"));
    }
    for page in &pages {
        browser.open(page).await;
        assert!(browser.has("main").await, "{page}");
        assert_eq!(browser.script("return window.broken === undefined").await, true, "{page} ran it");
        let inside = browser.script("return document.querySelectorAll('main script, main img, main b > script').length").await;
        assert_eq!(inside, 0, "{page} holds what came from outside as a tag");
        let text = browser.script("return document.body.textContent").await;
        let text = text.as_str().unwrap();
        let moves = text.chars().find(|c| (c.is_control() && *c != '\n') || matches!(c, '\u{202e}' | '\u{feff}'));
        assert_eq!(moves, None, "{page}");
        // it is cut: nothing pushes the page apart
        let wider = browser.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
        assert!(wider.as_i64().unwrap() <= 0, "{page} is wider than the screen by {wider}");
    }
    browser.open("/dead?collection=annotation").await;
    let shown = browser.page().await;
    assert!(shown.contains(SCRIPT) && shown.contains(QUOTES), "it is shown as it is: {shown}");
    assert!(shown.contains(r"a\u{1b}[2Jb\u{7}c\r\nd\u{202e}e\u{feff}"), "{shown}");
    // the end of a long text is one click away
    assert!(browser.has("details.long:not([open])").await);
    assert!(!shown.contains(&"long ".repeat(60)), "{shown}");
    browser.click("details.long summary").await;
    assert!(browser.text("details.long pre").await.len() > 9_000);
    let complaints = browser.complaints().await;
    assert!(!complaints.iter().any(|said| said.contains("Content Security Policy")), "{complaints:?}");
}
