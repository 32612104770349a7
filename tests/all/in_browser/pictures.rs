//! The pictures of docs/console, and what can be seen in them without eyes. `make console-pictures` keeps them.

use std::path::PathBuf;

use crate::common::{World, eventually};

use super::browser::Scripts;
use super::desk::{Desk, layout};

/// Where they are kept; without it they are looked at and thrown away.
const FOLDER: &str = "CATCHWORD_PICTURES";

/// Those that the documents show; of the others nobody needs a copy.
const KEPT: [&str; 8] = [
    "overview-desktop-light",
    "overview-desktop-dark",
    "overview-phone-dark",
    "collection-desktop-light",
    "dead-letters-desktop-light",
    "key-desktop-light",
    "reindex-dry-run-phone-light",
    "outage-phone-light",
];

/// A desk's screen and a phone's, in CSS pixels.
const SCREENS: [(&str, u32, u32); 2] = [("desktop", 1280, 800), ("phone", 390, 844)];

#[tokio::test(flavor = "multi_thread")]
async fn every_page_fits_a_desk_and_a_phone_in_light_and_in_dark() {
    let desk = Desk::with(World::with(layout()).await, Scripts::On).await;
    let (browser, world) = (&desk.browser, &desk.world);
    let folder = std::env::var_os(FOLDER).map(|folder| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder));
    take(&desk, folder.as_ref(), &[("sign-in", "/sign-in".into())]).await;
    desk.sign_in("mina", "admin").await;
    let key = furnish(world).await;
    let letter: i64 = world.one("select max(id) from catchword.dead_job where collection = 'annotation'").await;
    let pages = [
        ("overview", "/".to_owned()),
        ("collection", "/collections/annotation".into()),
        ("dead-letters", "/dead".into()),
        ("dead-letter-keys", format!("/dead/group/{letter}")),
        ("key", format!("/key?collection=annotation&key={key}")),
        ("reindex-new", "/reindexes/new?collection=annotation".into()),
        ("reindex-dry-run", "/do/reindex?collection=annotation&by=scope&scope=user&value=acct%3Aotto%40x&rate=500".into()),
        ("reindexes", "/reindexes".into()),
        ("audits", "/audits".into()),
        ("rebuilds", "/rebuilds".into()),
        ("checks", "/checks".into()),
        ("doctor", "/doctor".into()),
        ("journal", "/journal".into()),
        ("discard", "/do/discard?collection=annotation".into()),
        ("refused", "/collections/nobody".into()),
    ];
    browser.open("/").await;
    browser.see("[data-number=annotation-dead]", "17").await;
    take(&desk, folder.as_ref(), &pages).await;
    // the same first screen in an outage
    world.gate.as_ref().unwrap().refuse();
    browser.open("/").await;
    browser.see(".hero h1", "Not well").await;
    browser.see("[data-live=downs]", "Elasticsearch does not answer").await;
    take(&desk, folder.as_ref(), &[("outage", "/".into())]).await;
}

async fn take(desk: &Desk, folder: Option<&PathBuf>, pages: &[(&str, String)]) {
    let browser = &desk.browser;
    for (screen, width, height) in SCREENS {
        browser.screen(width, height).await;
        for scheme in ["light", "dark"] {
            browser.colours(scheme).await;
            for (name, path) in pages {
                browser.open(path).await;
                eventually("the page is there", async || browser.has("main").await).await;
                let wider = browser.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth").await;
                assert!(wider.as_i64().unwrap() <= 0, "{name} on a {screen} is wider than the screen by {wider}");
                let faint = browser.script(FAINT).await;
                assert_eq!(faint.as_array().unwrap().len(), 0, "{name}, {scheme}: {faint}");
                let picture = browser.picture().await;
                assert_eq!(&picture[1..4], b"PNG");
                let kept = format!("{name}-{screen}-{scheme}");
                if let Some(folder) = folder.filter(|_| KEPT.contains(&kept.as_str())) {
                    std::fs::create_dir_all(folder).unwrap();
                    std::fs::write(folder.join(format!("{kept}.png")), picture).unwrap();
                }
            }
        }
    }
    let complaints = browser.complaints().await;
    assert!(!complaints.iter().any(|said| said.contains("Content Security Policy")), "{complaints:?}");
}

/// Words that are hard to read: their contrast with what is behind them is below 4.5 to 1, or 3 to 1 for large ones.
const FAINT: &str = r#"
    const parse = (text) => (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
    const behind = (element) => { for (let e = element; e; e = e.parentElement) { const color = rgb(getComputedStyle(e).backgroundColor); if (color[3] > 200) return color; } return [255, 255, 255]; };
    const found = new Set();
    for (const element of document.querySelectorAll('body *')) {
        const words = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
        const style = getComputedStyle(element);
        if (!words.length || element.closest('svg, .only-read, .skip, option, .is-old') || !element.offsetParent || style.visibility === 'hidden') continue;
        const [a, b] = [light(rgb(style.color)), light(behind(element))].sort((x, y) => y - x);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.5 && Number(style.fontWeight) >= 600);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < (large ? 3 : 4.5)) found.add(`${element.className || element.tagName} "${words[0].textContent.trim().slice(0, 30)}" ${contrast.toFixed(2)}`);
    }
    return [...found];
"#;

/// Three hours of an installation that is used: traffic with a burst and a gap, dead letters of two errors, a reindex that is paused, a
/// journal. Returns a key that is in step.
async fn furnish(world: &World) -> String {
    let key = world.in_step("acct:mina@x", "A note in the margin").await;
    for n in 0..12 {
        world.annotate("acct:otto@x", &format!("note {n}")).await;
    }
    eventually("all of it is settled", async || world.jobs().await == 0).await;
    world
        .sql(
            "insert into catchword.history (collection, minute, scheduled, settled, written, pushed_back, buried, due, waiting, oldest_seconds, fresh_p50, fresh_p99)
             select c.name, date_trunc('minute', now()) - m * interval '1 minute', n, n, w, 0, 0,
                    (case when m between 62 and 78 then (17 - abs(70 - m) * 2) * 420 when m between 8 and 11 then 900 - abs(9 - m) * 250 else 4 + (m * 7) % 9 end) * c.share,
                    20 + (m * 13) % 17, 0.1, 0.03 + ((m * 7) % 5) * 0.01,
                    case when m between 8 and 11 then 40 + m when m between 62 and 78 then 120 else 0.3 + ((m * 11) % 13) * 0.07 end
               from (values ('annotation', 1.0), ('bystander', 0.1)) as c (name, share),
                    generate_series(1, 180) as m,
                    lateral (select ((case when m between 55 and 70 then 9000 + (m * 331) % 2500 when m between 7 and 10 then 4200 else 700 + (m * 97) % 420 end) * c.share)::int as n) as a,
                    lateral (select (n * 0.86)::int as w) as b
              where m not between 118 and 131
             on conflict do nothing",
        )
        .await;
    world
        .sql(
            "insert into catchword.dead_job (id, name, collection, key, tag, attempts, reason, last_error, enqueued_at, scheduled_at, expires_at, priority, died_at)
             select nextval('catchword.job_id_seq'), 'index', 'annotation', gen_random_uuid()::text, 'live', 5, 'refused',
                    'mapper_parsing_exception: failed to parse field [created] of type [date] in document: Preview of field''s value: ''yesterday''',
                    now() - n * interval '7 minutes', now(), now() + interval '30 days', 1, now() - n * interval '5 minutes' from generate_series(20, 33) as n
             union all
             select nextval('catchword.job_id_seq'), 'index', 'annotation', gen_random_uuid()::text, 'reindex.user', 5, 'unbuildable',
                    'invalid input syntax for type json', now() - interval '9 hours', now(), now() + interval '30 days', 1, now() - interval '8 hours' from generate_series(1, 3)",
        )
        .await;
    world
        .sql(
            "insert into catchword.journal (at, who, what, collection, detail, count) values
             (now() - interval '5 hours', 'otto', 'pause', 'annotation', 'the mapping is being changed', null),
             (now() - interval '4 hours 40 minutes', 'otto', 'resume', 'annotation', 'paused for 20 minutes', null),
             (now() - interval '2 hours', 'deploy', 'reindex', 'annotation', 'group 6eQ9, rewrite', 12804),
             (now() - interval '50 minutes', 'mina', 'replay', 'annotation', '--reason refused', 14)",
        )
        .await;
    // the worker writes into a gap that nobody can wait for: what it does next is not shown
    key
}
