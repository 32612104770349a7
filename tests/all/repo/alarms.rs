//! The alarms of `dashboards/`: each is tested, explained, and can be made to fire.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_norway::Value;

use crate::common::World;

/// What a woken person needs, in this order.
const SECTIONS: [&str; 5] = ["Meaning", "Is it real?", "Decide", "Fix", "Verify"];
const TESTS: [&str; 2] = ["alarms.test.yaml", "alarms.days.test.yaml"];

/// The alarms by name.
pub fn alarms() -> BTreeMap<String, Value> {
    let file: Value = serde_norway::from_str(&read("dashboards/alarms.yaml")).unwrap();
    let groups = file["groups"].as_sequence().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_sequence().unwrap());
    let alarms = rules.filter_map(|rule| Some((rule.get("alert")?.as_str()?.to_owned(), rule.clone())));
    let alarms: BTreeMap<String, Value> = alarms.collect();
    assert!(alarms.len() >= 20);
    alarms
}

fn names() -> BTreeSet<String> {
    alarms().into_keys().collect()
}

#[test]
fn promtool_takes_the_alarms_and_their_tests_pass() {
    promtool(&["check", "rules", "alarms.yaml"]);
    promtool(&["check", "config", "prometheus.yml"]);
    for tests in TESTS {
        promtool(&["test", "rules", tests]);
    }
}

#[test]
fn every_alarm_fires_in_one_story_and_is_silent_in_another() {
    let (mut fires, mut silent) = (BTreeSet::new(), BTreeSet::new());
    for file in TESTS {
        let file: Value = serde_norway::from_str(&read(&format!("dashboards/{file}"))).unwrap();
        for story in file["tests"].as_sequence().unwrap() {
            let everything = story["name"].as_str().unwrap().starts_with("nothing fires");
            for checked in story["alert_rule_test"].as_sequence().unwrap() {
                let name = checked["alertname"].as_str().unwrap().to_owned();
                match checked["exp_alerts"].as_sequence().unwrap().is_empty() {
                    false => _ = fires.insert(name),
                    // a story of its own, not only one of an idle system
                    true if !everything => _ = silent.insert(name),
                    true => {}
                }
            }
        }
    }
    assert_eq!(fires, names());
    assert_eq!(silent, names());
}

#[test]
fn every_alarm_says_whom_it_wakes_and_why_in_a_sentence() {
    for (name, alarm) in alarms() {
        assert!(name.starts_with("Catchword"));
        let severity = alarm["labels"]["severity"].as_str().unwrap();
        assert!(["page", "ticket"].contains(&severity), "{name}: {severity}");
        let said = |what: &str| alarm["annotations"][what].as_str().unwrap_or_else(|| panic!("{name} has no {what}"));
        let summary = said("summary");
        assert!(summary.ends_with('.') && !summary.trim_end_matches('.').contains(". "), "{name} is one sentence: {summary}");
        assert!(said("description").ends_with('.'));
        assert_eq!(said("runbook_url"), format!("dashboards/runbooks/{name}.md"));
        // what a gauge shows for a moment wakes nobody: it lasts, or it is remembered
        let lasts = alarm.get("for").is_some()
            || ["Expired", "Ahead", "LostWrites", "NoProgress", "PausedTooLong"].iter().any(|end| name.ends_with(end));
        assert!(lasts, "{name} has no for");
    }
}

#[test]
fn every_alarm_has_a_runbook_and_every_runbook_an_alarm() {
    let written: BTreeSet<String> =
        std::fs::read_dir(root().join("dashboards/runbooks")).unwrap().map(|file| stem(&file.unwrap().path())).collect();
    let wanted: BTreeSet<String> = names().into_iter().chain(["README".to_owned()]).collect();
    assert_eq!(written, wanted);
    let contents = read("dashboards/runbooks/README.md");
    for (name, alarm) in alarms() {
        let runbook = read(&format!("dashboards/runbooks/{name}.md"));
        let severity = alarm["labels"]["severity"].as_str().unwrap();
        assert_eq!(runbook.lines().next(), Some(format!("# {name} · {severity}").as_str()));
        let sections: Vec<&str> = runbook.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, SECTIONS, "{name}");
        let asked = section(&runbook, "Is it real?");
        assert!(asked.contains("```sh\n"), "{name}: there is nothing to paste");
        assert!(contents.contains(&format!("({name}.md)")), "{name} is not in the README of the runbooks");
        for link in runbook.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            assert!(root().join("dashboards/runbooks").join(link).exists(), "{name} links to {link}");
        }
    }
}

#[test]
fn every_alarm_has_a_fault_that_makes_it_fire() {
    let made = output(Command::new(root().join("scripts/faults")).arg("list"));
    assert_eq!(made.lines().map(str::to_owned).collect::<BTreeSet<_>>(), names());
    let refused = Command::new(root().join("scripts/faults")).arg("CatchwordNothing").output().unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
}

#[test]
fn the_copy_for_faults_has_shorter_times_and_is_otherwise_the_same() {
    let copy = output(Command::new(root().join("scripts/faults")).args(["rules", "60"]));
    let path = std::env::temp_dir().join(format!("catchword-alarms-{}.yaml", std::process::id()));
    std::fs::write(&path, &copy).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()]);
    std::fs::remove_file(path).unwrap();
    assert!(!copy.contains("[10m]") && copy.contains("[10s]") && copy.contains("> 15 # seconds") && copy.contains("offset 11520s"));
    assert!(copy.contains(" for: 10s\n") && !copy.contains("for: 5m"));
    assert_eq!(copy.lines().count(), read("dashboards/alarms.yaml").lines().count());
    for wrong in ["0", "x", "-1"] {
        let refused = Command::new(root().join("scripts/faults")).args(["rules", wrong]).output().unwrap();
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_makes_the_same_judgements_under_the_same_names() {
    let world = World::new().await;
    let mut judged = BTreeSet::new();
    // and what it says when Postgres cannot be asked
    for database in [world.database_url.as_str(), "postgres://nobody@127.0.0.1:1/nowhere"] {
        let output = world.binary().env("DATABASE_URL", database).args(["check", "--json"]).output().await.unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        judged.extend(report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(judged, names());
}

#[test]
fn check_draws_the_same_lines() {
    let files = ["check/thresholds.rs", "standing/read.rs", "standing/freshness.rs", "outcome/measured.rs", "heartbeat/mod.rs"];
    let source: String = files.iter().map(|file| read(&format!("src/{file}"))).collect();
    let line = |name: &str| -> f64 {
        let (_, rest) = source.split_once(&format!("const {name}: ")).unwrap_or_else(|| panic!("no {name}"));
        let value = rest.split_once("= ").unwrap().1.split(';').next().unwrap().replace('_', "");
        value.split('*').map(|factor| factor.trim().parse::<f64>().unwrap()).product()
    };
    for (alarm, name, drawn) in [
        ("CatchwordConsumerStopped", "STOPPED_SECONDS", "[10m]"),
        ("CatchwordPassFailing", "PASSLESS_SECONDS", "[10m]"),
        ("CatchwordDeadLettersGrowing", "LATELY_SECONDS", "[1h]"),
        ("CatchwordQueueLong", "QUEUE_JOBS", "> 50000 # jobs"),
        ("CatchwordOldestDueJob", "LIVE_DUE_SECONDS", "> 900 # seconds"),
        ("CatchwordOldestDueJob", "BULK_DUE_SECONDS", "> 21600 # seconds"),
        ("CatchwordOldestChange", "CHANGE_SECONDS", "> 1800 # seconds"),
        ("CatchwordNoProgress", "STILL_SECONDS", "> 60 # seconds"),
        ("CatchwordProducerStopped", "PRODUCERLESS_SECONDS", "[15m]"),
        ("CatchwordAuditStale", "UNAUDITED_SECONDS", "> 691200 # seconds"),
        ("CatchwordFreshnessBurnFast", "BURN_FAST_SHARE", "> 0.144 # of changes"),
        ("CatchwordFreshnessBurnFast", "BURN_CHANGES", ">= 10 # changes"),
        ("CatchwordFreshnessBurnSlow", "BURN_SLOW_SHARE", "> 0.06 # of changes"),
        ("CatchwordFreshnessBurnSlow", "BURN_CHANGES", ">= 10 # changes"),
        ("CatchwordPausedTooLong", "PAUSED_SECONDS", "> 14400 # seconds"),
        ("CatchwordVacuumHeldBack", "HELD_BACK_SECONDS", "> 3600 # seconds"),
    ] {
        let rule = &alarms()[alarm];
        assert!(rule["expr"].as_str().unwrap().contains(drawn), "{alarm} is no longer drawn at {drawn}");
        let number: f64 = drawn.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect::<String>().parse().unwrap();
        let unit = if drawn.ends_with("m]") {
            60.0
        } else if drawn.ends_with("h]") {
            3600.0
        } else {
            1.0
        };
        assert_eq!(line(name), number * unit, "{alarm} and check differ");
    }
    assert_eq!(alarms()["CatchwordQueueLong"]["for"], "30m");
    assert_eq!(line("QUEUE_SECONDS"), 1800.0);
    // each window of a burn rate is a record of its own
    let file = read("dashboards/alarms.yaml");
    for (alarm, name, window, seconds) in [
        ("CatchwordFreshnessBurnFast", "BURN_FAST_LONG_SECONDS", "1h", 3600.0),
        ("CatchwordFreshnessBurnFast", "BURN_FAST_SHORT_SECONDS", "5m", 300.0),
        ("CatchwordFreshnessBurnSlow", "BURN_SLOW_LONG_SECONDS", "6h", 21_600.0),
        ("CatchwordFreshnessBurnSlow", "BURN_SLOW_SHORT_SECONDS", "30m", 1800.0),
    ] {
        let record = format!("catchword:slow_changes:ratio{window}");
        assert!(alarms()[alarm]["expr"].as_str().unwrap().contains(&format!("{record}\n> ")), "{alarm} does not judge {record}");
        let rule = file.split_once(&format!("record: {record}\n")).unwrap().1.split("- record").next().unwrap();
        assert_eq!(rule.matches(&format!("[{window}]")).count(), 2, "{record}");
        assert_eq!(line(name), seconds, "{alarm} and check differ");
        assert!(rule.contains(&format!("le=~\"{}([.]0)?\"", line("OBJECTIVE_SECONDS"))), "{record}");
    }
    for window in ["1h", "6h"] {
        let rule = file.split_once(&format!("record: catchword:changes:increase{window}\n")).unwrap().1.lines().next().unwrap();
        assert!(rule.contains(&format!("[{window}]")), "{rule}");
    }
}

/// The text below a heading, up to the next.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    rest.split("\n## ").next().unwrap()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

fn promtool(arguments: &[&str]) {
    output(Command::new("promtool").args(arguments).current_dir(root().join("dashboards")));
}

/// What it printed; it must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; run: scripts/services tools"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
