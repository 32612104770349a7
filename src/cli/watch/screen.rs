//! What is on the screen. Pure: what was read, the time and the size come from outside.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::rates::Rate;
use crate::audit;
use crate::cli::history::{count, seconds};
use crate::cli::paint::Paint;
use crate::cli::sparkline::{Steps, sparkline};
use crate::history::Minute;
use crate::printable::{Line, Tone, printable};
use crate::rebuild::Stage;
use crate::status::{CollectionStatus, Status, UNKNOWN};

/// What was read is called old after this.
const OLD: Duration = Duration::from_secs(3);
/// Columns of a collection's name, at most.
const NAME: usize = 20;
/// Columns of the numbers behind it.
const NUMBERS: usize = 50;
/// Columns of a bar.
const BAR: usize = 20;
/// Minutes of a sparkline.
const MINUTES: usize = 60;

/// What is to be shown.
#[derive(Default)]
pub(super) struct View {
    /// None: nothing was read yet. An error is what a person must fix first.
    pub status: Option<Result<Status, String>>,
    /// The last hour of each collection.
    pub minutes: BTreeMap<String, Vec<Minute>>,
    pub rates: BTreeMap<String, Rate>,
    /// Audits that are not finished.
    pub audits: Vec<audit::Unfinished>,
}

/// Something that runs, and how far it has come.
struct Running {
    what: String,
    /// From 0 to 1; none: nobody knows.
    share: Option<f64>,
    says: String,
}

/// The lines, each no longer than the width; `age` is how long ago the view was read.
pub(super) fn screen(view: &View, age: Option<Duration>, now: DateTime<Utc>, size: (usize, usize), paint: Paint) -> Vec<String> {
    let (width, height) = size;
    let mut lines = vec![paint.bold(&cut(&title(age, now, width), width))];
    lines.push(String::new());
    match &view.status {
        None => lines.push(cut("asking …", width)),
        Some(Err(why)) => lines.push(paint.line(&(Tone::Wrong, cut(&format!("could not tell: {}", printable(why)), width)))),
        Some(Ok(status)) => {
            for (server, why) in [("postgres", &status.postgres), ("elasticsearch", &uncounted(status))] {
                let says = why.as_ref().map(|why| cut(&format!("{server}  could not be asked: {}", printable(why)), width));
                lines.extend(says.map(|says| paint.line(&(Tone::Wrong, says))));
            }
            if lines.len() > 2 {
                lines.push(String::new());
            }
            lines.extend(table(view, status, now, width, paint));
            let toned = |lines: Vec<Line>| lines.into_iter().map(|(tone, text)| paint.line(&(tone, cut(&text, width)))).collect::<Vec<_>>();
            section(&mut lines, toned(troubles(status)));
            section(&mut lines, running(view, status).iter().map(|running| bar(running, width)).collect());
            section(&mut lines, toned(everybody(status)));
        }
    }
    if lines.len() > height {
        let shown = height.saturating_sub(1).max(1);
        let hidden = lines.len() - shown;
        lines.truncate(shown);
        if height > 1 {
            lines.push(paint.faint(&cut(&format!("… and {hidden} lines more: make the window higher, or: catchword status"), width)));
        }
    }
    lines
}

/// Why Elasticsearch did not say how many documents there are.
fn uncounted(status: &Status) -> Option<String> {
    status.collections.iter().find_map(|collection| collection.uncounted.clone())
}

fn title(age: Option<Duration>, now: DateTime<Utc>, width: usize) -> String {
    let old = age.filter(|age| *age > OLD).map_or(String::new(), |age| format!(", as of {} s ago", age.as_secs()));
    let (left, right) = (format!("catchword  {} UTC{old}", now.format("%H:%M:%S")), "q quits");
    let between = width.saturating_sub(left.chars().count() + right.len()).max(2);
    format!("{left}{}{right}", " ".repeat(between))
}

/// A line for each collection: numbers, and the last hour.
fn table(view: &View, status: &Status, now: DateTime<Utc>, width: usize, paint: Paint) -> Vec<String> {
    let longest = status.collections.iter().map(|collection| collection.name.len()).max().unwrap_or(0);
    let name = longest.clamp("collection".len(), NAME);
    let steps = Steps::of(MINUTES as i64, width.saturating_sub(name + NUMBERS + 2).clamp(1, MINUTES));
    let heads = ["due", "waiting", "oldest", "dead", "settled/s", "written/s"];
    let head = format!("{:<name$}{}  due, last hour", "collection", columns(heads.map(str::to_owned)));
    let mut lines = vec![paint.faint(&cut(&head, width))];
    for collection in &status.collections {
        let tone = collection.lines().iter().map(|(tone, _)| *tone).max().unwrap_or(Tone::Plain);
        let rest = columns(numbers(collection, view.rates.get(&collection.name)));
        let minutes = view.minutes.get(&collection.name).map(Vec::as_slice).unwrap_or_default();
        let bars = sparkline(&steps.most(minutes, now, |minute| Some(minute.due as f64)));
        let shown = cut(&format!("{:<name$}", collection.name), name);
        let rest = cut(&format!("{rest}  {bars}"), width.saturating_sub(name));
        lines.push(format!("{}{}", paint.text(tone, &cut(&shown, width)), rest.trim_end()));
    }
    lines
}

fn columns([due, waiting, oldest, dead, settled, written]: [String; 6]) -> String {
    format!("{due:>7}{waiting:>8}{oldest:>7}{dead:>6}{settled:>11}{written:>11}")
}

fn numbers(collection: &CollectionStatus, rate: Option<&Rate>) -> [String; 6] {
    let census = collection.census.as_ref();
    let counted = |number: Option<i64>| number.map_or("?".into(), |number| count(number as f64));
    let oldest = census.map_or("?".into(), |census| census.oldest_change_seconds.or(census.oldest_due_seconds).map_or("–".into(), seconds));
    let rate = rate.copied().unwrap_or_default();
    [
        counted(census.map(|census| census.due)),
        counted(census.map(|census| census.waiting)),
        oldest,
        counted(census.map(|census| census.dead)),
        count(rate.settled),
        count(rate.written),
    ]
}

/// What is not as it should be, with whose it is.
fn troubles(status: &Status) -> Vec<Line> {
    let mut lines = Vec::new();
    // the census has its columns, and a server that is down is told once
    let is_news = |text: &str| !text.starts_with("  jobs ") && !text.starts_with("  dead ") && !text.contains(UNKNOWN);
    for collection in &status.collections {
        let told = collection.lines().into_iter().filter(|(tone, text)| *tone >= Tone::Note && is_news(text));
        lines.extend(told.map(|(tone, text)| (tone, format!("{}: {}", collection.name, text.trim_start()))));
        if collection.census.as_ref().is_some_and(|census| census.dead > 0) {
            lines.push((Tone::Wrong, format!("{}: there are dead letters; see them: catchword dead list", collection.name)));
        }
    }
    lines
}

/// Workers, and jobs that nobody serves.
fn everybody(status: &Status) -> Vec<Line> {
    status.lines_of_everybody().into_iter().filter(|(_, text)| !text.starts_with("reindex ")).collect()
}

fn running(view: &View, status: &Status) -> Vec<Running> {
    let mut all = Vec::new();
    for collection in &status.collections {
        if let Some(rebuild) = collection.rebuild.as_ref().filter(|rebuild| rebuild.rebuild.stage != Stage::Keep) {
            let left = rebuild.seconds_left.map_or(String::new(), |left| format!(", about {} to go", seconds(left)));
            let (what, says) = (format!("rebuild of {}", collection.name), format!("{}{left}", rebuild.rebuild.stage.name()));
            all.push(Running { what, share: Some(rebuild.ratio()), says });
        }
        let is_audited = collection.audit.as_ref().is_some_and(|audit| audit.running);
        if let Some(audit) = view.audits.iter().find(|audit| is_audited && audit.collection == collection.name) {
            // every row is looked at, and every document of each index
            let expected = collection.documents.map(|documents| documents as f64 * (1 + collection.indices.len()) as f64);
            let share = expected.filter(|expected| *expected > 0.0).map(|expected| (audit.looked as f64 / expected).min(0.99));
            all.push(Running { what: format!("audit of {}", collection.name), share, says: format!("{} looked at", audit.looked) });
        }
    }
    for reindex in &status.reindexes {
        let what = format!("reindex {} of {}, {}", reindex.id, reindex.collection, printable(&reindex.what));
        let share = reindex.total().filter(|total| *total > 0).map(|total| reindex.through() as f64 / total as f64);
        let left = reindex.seconds_left.map_or(String::new(), |left| format!(", about {} to go", seconds(left)));
        all.push(Running { what, share, says: format!("{}, {} settled{left}", reindex.state, reindex.settled) });
    }
    all
}

fn bar(running: &Running, width: usize) -> String {
    let drawn = running.share.map_or(String::new(), |share| {
        let full = ((share.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
        format!("{}{} {:>3.0} %  ", "█".repeat(full), "░".repeat(BAR - full), share * 100.0)
    });
    cut(&format!("{:<28} {drawn}{}", running.what, running.says), width)
}

/// Some lines behind an empty one, if there are any.
fn section(lines: &mut Vec<String>, more: Vec<String>) {
    if !more.is_empty() {
        lines.push(String::new());
        lines.extend(more);
    }
}

/// No longer than the width; what is cut off is shown to be.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) if width == 0 => String::new(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Census;
    use chrono::TimeDelta;

    fn census(due: i64, dead: i64) -> Census {
        Census {
            due,
            waiting: 3,
            dead,
            expired: 0,
            oldest_due_seconds: (due > 0).then_some(40.0),
            oldest_live_seconds: None,
            oldest_bulk_seconds: None,
            oldest_change_seconds: None,
            still_seconds: None,
            still_why: None,
            failing_touches: 0,
            failing_touch_seconds: None,
            failing_touch_error: None,
            estimated: false,
        }
    }

    fn collection(name: &str, census: Option<Census>, blocked: Option<&str>) -> CollectionStatus {
        CollectionStatus {
            name: name.into(),
            census,
            paused: None,
            blocked: blocked.map(str::to_owned),
            stands_still_for: None,
            alias: name.into(),
            indices: vec![format!("{name}-000001")],
            documents: Some(10),
            uncounted: None,
            served: true,
            rebuild: None,
            drift: None,
            not_shown: None,
            unmigrated: None,
            audit: None,
        }
    }

    fn view(collections: Vec<CollectionStatus>, postgres: Option<&str>) -> View {
        let status =
            Status { postgres: postgres.map(str::to_owned), collections, workers: Vec::new(), unserved: Vec::new(), reindexes: Vec::new() };
        View { status: Some(Ok(status)), ..View::default() }
    }

    fn drawn(view: &View, size: (usize, usize)) -> Vec<String> {
        screen(view, Some(Duration::from_secs(1)), DateTime::UNIX_EPOCH, size, Paint::Plain)
    }

    #[test]
    fn no_line_is_wider_and_the_screen_no_higher_than_the_terminal() {
        let why = "the index takes no writes, and this is a long reason for it that does not fit into a line of eighty columns at all";
        let many = (0..30).map(|n| collection(&format!("collection_with_a_very_long_name_{n}"), Some(census(n, 0)), Some(why))).collect();
        let view = view(many, Some("connection refused"));
        for size in [(80, 24), (120, 50), (40, 10), (10, 3), (1, 1)] {
            let lines = drawn(&view, size);
            assert!(lines.len() <= size.1, "{size:?}: {}", lines.len());
            for line in &lines {
                assert!(line.chars().count() <= size.0, "{size:?}: {line}");
            }
        }
        assert!(drawn(&view, (80, 24)).last().unwrap().starts_with("… and "));
    }

    #[test]
    fn a_collection_shows_its_numbers_its_rates_and_its_last_hour() {
        let mut view = view(vec![collection("note", Some(census(12, 0)), None)], None);
        view.rates.insert("note".into(), Rate { settled: 120.0, written: 2.5 });
        let minute = |ago: i64, due: i64| Minute {
            at: DateTime::UNIX_EPOCH - TimeDelta::minutes(ago),
            scheduled: 0,
            settled: 0,
            written: 0,
            pushed_back: 0,
            buried: 0,
            due,
            waiting: 0,
            oldest_seconds: None,
            fresh_p50: None,
            fresh_p99: None,
        };
        view.minutes.insert("note".into(), vec![minute(3, 0), minute(2, 4), minute(1, 8)]);
        let lines = drawn(&view, (140, 24));
        assert_eq!(lines[2], "collection    due waiting oldest  dead  settled/s  written/s  due, last hour");
        assert!(lines[3].starts_with("note           12       3   40 s     0        120        2.5  "), "{}", lines[3]);
        assert!(lines[3].ends_with("▁▅█"), "{}", lines[3]);
        assert_eq!(lines[3].chars().count(), 10 + NUMBERS + 2 + 60);
    }

    #[test]
    fn what_is_wrong_is_told_below_in_red_and_what_is_well_has_no_colour() {
        let collections = vec![collection("note", Some(census(0, 2)), Some("closed")), collection("well", Some(census(0, 0)), None)];
        let lines = screen(&view(collections, None), None, DateTime::UNIX_EPOCH, (100, 24), Paint::Colours);
        let text = lines.join("\n");
        for red in
            ["\x1b[1;31mnote      \x1b[0m", "\x1b[1;31mnote\x1b[0m: blocked   closed", "\x1b[1;31mnote\x1b[0m: there are dead letters"]
        {
            assert!(text.contains(red), "{red:?} is not in {text:?}");
        }
        assert!(lines.iter().any(|line| line.starts_with("well   ")), "{text:?}");
    }

    #[test]
    fn a_server_that_is_down_is_told_and_what_was_read_before_says_how_old_it_is() {
        let down = view(vec![collection("note", None, None)], Some("connection refused"));
        let lines = screen(&down, Some(Duration::from_secs(9)), DateTime::UNIX_EPOCH, (100, 24), Paint::Plain);
        assert!(lines[0].starts_with("catchword  00:00:00 UTC, as of 9 s ago") && lines[0].ends_with("q quits"), "{}", lines[0]);
        assert_eq!(lines[2], "postgres  could not be asked: connection refused");
        assert!(lines[5].starts_with("note            ?       ?      ?     ?"), "{}", lines[5]);
        let failed = View { status: Some(Err("the schema is older\n\u{1b}[2J".into())), ..View::default() };
        assert_eq!(drawn(&failed, (100, 24))[2], r"could not tell: the schema is older\n\u{1b}[2J");
        assert_eq!(drawn(&View::default(), (100, 24))[2], "asking …");
    }

    #[test]
    fn what_runs_has_a_bar_if_somebody_knows_how_far_it_is() {
        let running = |share| Running { what: "audit of note".into(), share, says: "500 looked at".into() };
        assert_eq!(bar(&running(Some(0.5)), 80), "audit of note                ██████████░░░░░░░░░░  50 %  500 looked at");
        assert_eq!(bar(&running(None), 80), "audit of note                500 looked at");
        assert_eq!(bar(&running(Some(7.0)), 50).chars().count(), 50);
    }
}
