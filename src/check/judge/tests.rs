use serde_json::json;
use uuid::Uuid;

use super::words::jobs;
use super::*;
use crate::audit::{Switched, Verified};
use crate::check::TOPICS;
use crate::drift::Due;
use crate::job::{CENSUS_LIMIT, Census, Letters};
use crate::pause::Pause;
use crate::standing::{CollectionStanding, Seen};

/// A world in which all is well.
fn all_is_well() -> Standing {
    let census = Census {
        due: 3,
        waiting: 2,
        dead: 0,
        expired: 0,
        oldest_due_seconds: Some(5.0),
        oldest_live_seconds: Some(5.0),
        oldest_bulk_seconds: None,
        oldest_change_seconds: Some(65.0),
        still_seconds: Some(3.0),
        still_why: None,
        failing_touches: 0,
        failing_touch_seconds: None,
        failing_touch_error: None,
        estimated: false,
    };
    let note = CollectionStanding {
        name: "note".into(),
        census: Some(census),
        letters: Some(Letters::default()),
        audit: Some(Verified::default()),
        unaudited_seconds: Some(3_600.0),
        ..CollectionStanding::default()
    };
    let worker = WorkerRow {
        id: Uuid::nil(),
        host: "h".into(),
        version: "1".into(),
        collections: vec!["note".into()],
        blocked: json!({}),
        breaker: "closed".into(),
        trouble: None,
        lane: None,
        seen_seconds_ago: 20.0,
        passed_seconds_ago: 20.0,
    };
    Standing { collections: vec![note], workers: vec![worker], canary_seconds: Some(30.0), known: TOPICS.into(), ..Standing::default() }
}

fn paused_for(seconds: f64) -> Option<Pause> {
    let (since, by, reason) = (chrono::DateTime::UNIX_EPOCH, "mina".into(), "moving".into());
    Some(Pause { collection: "note".into(), since, seconds, by, reason })
}

/// What is not well after a change of the standing: names and levels.
fn found(change: impl FnOnce(&mut Standing)) -> Vec<(&'static str, Level)> {
    let mut standing = all_is_well();
    change(&mut standing);
    let checks = judge(&standing);
    for check in &checks {
        assert_eq!(check.level == Level::Well, check.remedy.is_empty(), "{check:?}");
    }
    checks.iter().filter(|check| check.level != Level::Well).map(|check| (check.name, check.level)).collect()
}

impl CollectionStanding {
    fn census(&mut self) -> &mut Census {
        self.census.as_mut().unwrap()
    }

    fn live_due_for(&mut self, seconds: f64) {
        self.census().oldest_live_seconds = Some(seconds);
        self.census().oldest_due_seconds = Some(seconds);
    }

    fn bulk_due_for(&mut self, seconds: f64) {
        self.census().oldest_bulk_seconds = Some(seconds);
        self.census().oldest_due_seconds = Some(seconds);
    }
}

/// This alarm and no other fires after the first change; none does after the second, which stays just below the line.
fn fires(name: &'static str, unwell: impl FnOnce(&mut Standing), well: impl FnOnce(&mut Standing)) {
    assert_eq!(found(unwell), [(name, Level::Unwell)]);
    assert_eq!(found(well), []);
}

fn held(by: &str, seconds: Option<f64>, transactions: i64) -> Holder {
    Holder { by: by.into(), who: "somebody".into(), seconds, transactions, name: "1".into(), xmin: None }
}

#[test]
fn a_living_system_is_well() {
    assert_eq!(found(|_| {}), []);
}

#[test]
fn a_worker_that_was_not_seen_is_absent() {
    fires("CatchwordWorkerAbsent", |f| f.workers[0].seen_seconds_ago = 116.0, |f| f.workers[0].seen_seconds_ago = 114.0);
    fires("CatchwordWorkerAbsent", |f| f.workers[0].collections.clear(), |_| {});
    fires("CatchwordWorkerAbsent", |f| f.unserved.push("stranger".into()), |_| {});
}

#[test]
fn work_that_is_due_and_old_and_served_by_nobody_means_that_the_consumer_stopped() {
    let stopped = |f: &mut Standing| {
        f.workers.clear();
        f.collections[0].live_due_for(601.0);
    };
    let absent = ("CatchwordWorkerAbsent", Level::Unwell);
    assert_eq!(found(stopped), [absent, ("CatchwordConsumerStopped", Level::Unwell)]);
    let of_a_bulk = |f: &mut Standing| {
        f.workers.clear();
        f.collections[0].bulk_due_for(601.0);
    };
    assert_eq!(found(of_a_bulk), [absent, ("CatchwordConsumerStopped", Level::Unwell)]);
    let paused = |f: &mut Standing| {
        stopped(f);
        f.collections[0].paused = paused_for(60.0);
    };
    assert_eq!(found(paused), [absent], "a pause is no stop");
    let served = |f: &mut Standing| f.collections[0].live_due_for(601.0);
    assert_eq!(found(served), []);
    let young = |f: &mut Standing| {
        f.workers.clear();
        f.collections[0].live_due_for(599.0);
    };
    assert_eq!(found(young), [absent]);
}

#[test]
fn work_that_is_due_and_does_not_move_is_told_unless_another_line_tells_why() {
    let still = |seconds| move |f: &mut Standing| f.collections[0].census().still_seconds = Some(seconds);
    fires("CatchwordNoProgress", still(61.0), still(59.0));
    fires("CatchwordNoProgress", still(61.0), |f| {
        still(61.0)(f);
        f.collections[0].paused = paused_for(60.0);
    });
    let also = |name, change: fn(&mut Standing)| {
        let found = found(|f| {
            still(3_600.0)(f);
            change(f);
        });
        assert_eq!(found, [(name, Level::Unwell)]);
    };
    also("CatchwordElasticsearchDown", |f| f.elasticsearch = Some("refused".into()));
    also("CatchwordBreakerOpen", |f| f.workers[0].breaker = "unreachable".into());
    also("CatchwordCollectionBlocked", |f| f.collections[0].problem = Some("its index is closed".into()));
    also("CatchwordPassFailing", |f| {
        f.workers[0].trouble = Some("a lock was not had".into());
        f.workers[0].passed_seconds_ago = 121.0;
    });
    also("CatchwordWorkerAbsent", |f| f.workers.clear());
    let mut standing = all_is_well();
    let census = standing.collections[0].census();
    (census.still_seconds, census.still_why) = (Some(90.0), Some("no answer within 30 s".into()));
    let said = judge(&standing).into_iter().find(|check| check.level == Level::Unwell).unwrap().says;
    assert_eq!(said, "3 jobs due, and none was written or settled for 1m 30s: no answer within 30 s");
}

#[test]
fn a_change_may_be_half_an_hour_old_however_often_it_was_put_off() {
    let change = |seconds| move |f: &mut Standing| f.collections[0].census().oldest_change_seconds = Some(seconds);
    fires("CatchwordOldestChange", change(1_801.0), change(1_799.0));
    fires("CatchwordOldestChange", change(1_801.0), |f| {
        change(1_801.0)(f);
        f.collections[0].paused = paused_for(60.0);
    });
    let mut standing = all_is_well();
    let census = standing.collections[0].census();
    census.oldest_change_seconds = Some(1_860.0);
    (census.failing_touches, census.failing_touch_error) = (2, Some("no column author".into()));
    let said = judge(&standing).into_iter().find(|check| check.level == Level::Unwell).unwrap().says;
    assert_eq!(said, "a change was made 31m ago and is not verified; 2 changes of related rows could not be passed on: no column author");
}

#[test]
fn a_queue_is_long_when_many_are_due_for_long() {
    let queue = |due, seconds| {
        move |f: &mut Standing| {
            f.collections[0].census().due = due;
            f.collections[0].bulk_due_for(seconds);
        }
    };
    fires("CatchwordQueueLong", queue(50_001, 1_801.0), queue(50_001, 1_799.0));
    fires("CatchwordQueueLong", queue(5_000_000, 1_801.0), queue(50_000, 1_801.0));
}

#[test]
fn a_live_job_may_be_due_for_a_quarter_of_an_hour_and_one_of_a_bulk_for_six() {
    let live = |seconds| move |f: &mut Standing| f.collections[0].live_due_for(seconds);
    let bulk = |seconds| move |f: &mut Standing| f.collections[0].bulk_due_for(seconds);
    fires("CatchwordOldestDueJob", live(901.0), live(899.0));
    fires("CatchwordOldestDueJob", bulk(21_601.0), bulk(21_599.0));
    let paused = |f: &mut Standing| {
        live(901.0)(f);
        f.collections[0].paused = paused_for(60.0);
    };
    assert_eq!(found(paused), [], "while it is paused it is meant to be old");
}

/// Counts of one collection: window in seconds, changes, slow.
fn seen(collection: &'static str, counts: &'static [(i64, i64, i64)]) -> impl FnOnce(&mut Standing) {
    let of = move |&(seconds, changes, slow): &(i64, i64, i64)| Seen { collection: collection.into(), seconds, changes, slow };
    move |f| f.seen.extend(counts.iter().map(of))
}

#[test]
fn an_allowance_that_is_spent_too_fast_is_told_while_it_goes_on() {
    let (fast, slow) = ("CatchwordFreshnessBurnFast", "CatchwordFreshnessBurnSlow");
    let note = |counts| seen("note", counts);
    // over the share, and on it; in both windows
    fires(fast, note(&[(300, 100, 15), (3_600, 1_000, 145)]), note(&[(300, 100, 15), (3_600, 1_000, 144)]));
    fires(fast, note(&[(300, 100, 15), (3_600, 1_000, 145)]), note(&[(300, 125, 18), (3_600, 1_000, 145)]));
    fires(slow, note(&[(1_800, 100, 7), (21_600, 1_000, 61)]), note(&[(1_800, 100, 7), (21_600, 1_000, 60)]));
    fires(slow, note(&[(1_800, 100, 7), (21_600, 1_000, 61)]), note(&[(1_800, 100, 6), (21_600, 1_000, 61)]));
    // ten are some, nine are chance
    fires(fast, note(&[(300, 10, 10), (3_600, 10, 10)]), note(&[(300, 9, 9), (3_600, 9, 9)]));
    fires(slow, note(&[(1_800, 10, 10), (21_600, 10, 10)]), note(&[(1_800, 9, 9), (21_600, 9, 9)]));
    // an outage that is over, and one in which nothing was settled: others tell of that
    assert_eq!(found(note(&[(3_600, 1_000, 900), (1_800, 500, 0), (21_600, 1_000, 900)])), []);
    assert_eq!(found(note(&[])), []);
    // another's changes are not ours, the canary's count while it lives
    assert_eq!(found(seen("stranger", &[(300, 10, 10), (3_600, 10, 10)])), []);
    assert_eq!(found(seen("catchword_canary", &[(300, 10, 10), (3_600, 10, 10)])), [(fast, Level::Unwell)]);
    let no_canary = |f: &mut Standing| {
        seen("catchword_canary", &[(300, 10, 10), (3_600, 10, 10)])(f);
        f.canary_seconds = None;
    };
    assert_eq!(found(no_canary), []);
}

#[test]
fn one_expired_job_is_enough() {
    fires("CatchwordJobsExpired", |f| f.collections[0].census().expired = 1, |f| f.collections[0].census().expired = 0);
}

#[test]
fn a_dead_letter_of_the_last_hour_is_unwell_and_an_older_one_a_warning() {
    let letters = |lately, dead| {
        move |f: &mut Standing| {
            f.collections[0].letters.as_mut().unwrap().lately = lately;
            f.collections[0].census().dead = dead;
        }
    };
    fires("CatchwordDeadLettersGrowing", letters(1, 1), letters(0, 0));
    assert_eq!(found(letters(0, 7)), [("CatchwordDeadLettersGrowing", Level::Warning)]);
}

#[test]
fn a_worker_whose_passes_fail_is_named() {
    fires("CatchwordPassFailing", |f| f.workers[0].passed_seconds_ago = 601.0, |f| f.workers[0].passed_seconds_ago = 599.0);
    let lane = |f: &mut Standing| f.workers[0].lane = Some("a lock is held by process 7".into());
    assert_eq!(found(lane), [("CatchwordPassFailing", Level::Warning)]);
    fires(
        "CatchwordPassFailing",
        |f| {
            lane(f);
            f.workers[0].passed_seconds_ago = 601.0;
        },
        |_| {},
    );
}

#[test]
fn what_workers_say_of_breakers_and_blocked_collections_counts_while_they_live() {
    fires("CatchwordBreakerOpen", |f| f.workers[0].breaker = "unreachable".into(), |_| {});
    fires(
        "CatchwordCollectionBlocked",
        |f| f.workers[0].blocked = json!({ "note": "closed" }),
        |f| f.workers[0].blocked = json!({ "x": "" }),
    );
    fires("CatchwordCollectionBlocked", |f| f.collections[0].problem = Some("its trigger is off".into()), |_| {});
    let gone = |f: &mut Standing| {
        f.workers[0].breaker = "unreachable".into();
        f.workers[0].blocked = json!({ "note": "closed" });
        f.workers[0].seen_seconds_ago = 9_000.0;
    };
    assert_eq!(found(gone), [("CatchwordWorkerAbsent", Level::Unwell)], "what the dead said long ago is no news");
}

#[test]
fn an_index_that_stays_ahead_and_a_server_that_lost_commits_are_told() {
    fires(
        "CatchwordAhead",
        |f| f.collections[0].letters.as_mut().unwrap().ahead = 1,
        |f| f.collections[0].letters.as_mut().unwrap().ahead = 0,
    );
    let switched = |f: &mut Standing| {
        let switched = Some(Switched { seconds: 60.0, how: "another server".into() });
        f.collections[0].audit = Some(Verified { switched, ..Verified::default() });
    };
    fires("CatchwordServerSwitched", switched, |_| {});
    let mut standing = all_is_well();
    switched(&mut standing);
    let said = judge(&standing).into_iter().find(|check| check.level == Level::Unwell).unwrap();
    assert!(said.remedy.contains("reindex note --all --rewrite"), "{said:?}");
}

#[test]
fn a_pause_of_half_a_day_may_be_forgotten() {
    let paused = |seconds| move |f: &mut Standing| f.collections[0].paused = paused_for(seconds);
    fires("CatchwordPausedTooLong", paused(14_401.0), paused(14_399.0));
}

#[test]
fn a_canary_that_nobody_changed_means_that_the_producer_stopped() {
    let changed = |seconds| move |f: &mut Standing| f.canary_seconds = Some(seconds);
    fires("CatchwordProducerStopped", changed(901.0), changed(899.0));
    fires("CatchwordProducerStopped", changed(901.0), |f| f.canary_seconds = None);
    let mut never = all_is_well();
    changed(f64::INFINITY)(&mut never);
    let stopped = judge(&never).into_iter().find(|check| check.level != Level::Well).unwrap();
    assert!(stopped.says.contains("not even the canary was ever changed: "), "{stopped:?}");
    let no_worker = |f: &mut Standing| {
        changed(901.0)(f);
        f.workers.clear();
    };
    assert_eq!(found(no_worker), [("CatchwordWorkerAbsent", Level::Unwell)], "nobody was there to change it");
}

#[test]
fn what_audits_and_sentinels_found_is_told_and_so_is_that_nobody_audits() {
    let differed = |kind: &str| {
        let counts = [(kind.to_owned(), 3)].into();
        move |f: &mut Standing| f.collections[0].audit = Some(Verified { counts, ..Verified::default() })
    };
    fires("CatchwordAuditDrift", differed("missing"), differed("pending"));
    fires("CatchwordAuditDrift", |f| f.collections[0].not_shown = Some("it is not found under its search alias".into()), |_| {});
    for (kind, remedy, other) in [
        ("missing", "catchword audit note --repair", "dead list"),
        ("content", "catchword audit note --content --repair", "dead list"),
        ("dead", "catchword dead list --collection note", "--repair"),
    ] {
        let mut standing = all_is_well();
        differed(kind)(&mut standing);
        let drift = judge(&standing).into_iter().find(|check| check.name == "CatchwordAuditDrift").unwrap();
        assert!(drift.remedy.contains(remedy) && !drift.remedy.contains(other), "{kind}: {}", drift.remedy);
    }
    // an audit that never was found nothing, but nobody may say so
    let drift_says = |audit: Option<Verified>| {
        let mut standing = all_is_well();
        standing.collections[0].audit = audit;
        judge(&standing).into_iter().find(|check| check.name == "CatchwordAuditDrift").unwrap().says
    };
    assert_eq!(drift_says(Some(Verified::default())), "no audit has ended yet");
    let ended = Verified { finished_at: Some(chrono::Utc::now()), ..Verified::default() };
    assert_eq!(drift_says(Some(ended)), "the last audit found nothing");
    let lost = |lost: Option<&str>| {
        let lost_lately = lost.map(str::to_owned);
        move |f: &mut Standing| f.collections[0].audit = Some(Verified { lost_lately, ..Verified::default() })
    };
    fires("CatchwordIndexLostWrites", lost(Some("the sentinel is gone")), lost(None));
    let unaudited = |seconds| move |f: &mut Standing| f.collections[0].unaudited_seconds = Some(seconds);
    fires("CatchwordAuditStale", unaudited(691_201.0), unaudited(691_199.0));
}

#[test]
fn whoever_holds_vacuum_back_for_an_hour_is_named() {
    for by in ["session", "prepared", "slot", "standby"] {
        let held_for = |seconds| move |f: &mut Standing| f.holders.push(held(by, Some(seconds), 1));
        fires("CatchwordVacuumHeldBack", held_for(3_601.0), held_for(3_599.0));
    }
    // what has no clock is judged by the transactions since
    let since = |n| move |f: &mut Standing| f.holders.push(held("slot", None, n));
    fires("CatchwordVacuumHeldBack", since(1_000_001), since(999_999));
}

#[test]
fn an_elasticsearch_that_is_down_is_unwell_and_without_postgres_nothing_can_be_told() {
    fires("CatchwordElasticsearchDown", |f| f.elasticsearch = Some("refused".into()), |_| {});
    let levels = |elasticsearch| {
        let checks = judge_unasked(&Unasked::Down("no route".into()), elasticsearch);
        checks.iter().map(|check| (check.name, check.level)).collect::<Vec<_>>()
    };
    let postgres = ("CatchwordPostgresDown", Level::Unknown);
    assert_eq!(levels(None), [postgres, ("CatchwordElasticsearchDown", Level::Well)]);
    assert_eq!(levels(Some("refused")), [postgres, ("CatchwordElasticsearchDown", Level::Unwell)]);
}

#[test]
fn a_postgres_that_answers_and_refuses_is_not_told_as_down() {
    let said = |unasked| judge_unasked(&unasked, None).remove(0);
    let refused = said(Unasked::Refused("this Postgres is a standby".into()));
    assert_eq!(refused.says, "postgres answers, and refuses: this Postgres is a standby");
    assert!(!refused.remedy.contains("start it"), "{refused:?}");
    assert!(said(Unasked::Down("no route".into())).remedy.contains("start it"));
}

#[test]
fn what_postgres_refuses_is_named_and_the_rest_is_judged() {
    let refused = |topic, forget: fn(&mut Standing)| {
        let mut standing = all_is_well();
        forget(&mut standing);
        standing.known.retain(|known| *known != topic);
        standing.refused.push((topic, "a lock was not had".into()));
        judge(&standing)
    };
    let all = judge(&all_is_well()).len();
    for (topic, forget, unjudged) in [
        (Topic::Workers, (|f| f.workers.clear()) as fn(&mut Standing), 6),
        (Topic::Attached, |_| {}, 1),
        (Topic::Census, |f| f.collections[0].census = None, 7),
        (Topic::Letters, |f| f.collections[0].letters = None, 2),
        (Topic::Pauses, |_| {}, 1),
        (Topic::Audits, |f| f.collections[0].audit = None, 3),
        (Topic::Unaudited, |_| {}, 1),
        (Topic::Unserved, |_| {}, 1),
        (Topic::Vacuum, |_| {}, 1),
        (Topic::Freshness, |_| {}, 4),
        (Topic::Canary, |f| f.canary_seconds = None, 3),
    ] {
        let checks = refused(topic, forget);
        let not_well: Vec<&Check> = checks.iter().filter(|check| check.level != Level::Well).collect();
        assert_eq!((not_well.len(), not_well[0].name, not_well[0].level), (1, "CatchwordPostgresDown", Level::Unknown), "{topic:?}");
        assert!(not_well[0].says.starts_with("postgres answers, and refuses: a lock was not had"), "{not_well:?}");
        assert_eq!(checks.len(), all + 1 - unjudged, "{topic:?}");
    }
}

#[test]
fn a_view_that_changed_since_documents_were_built_is_a_warning_with_the_remedy() {
    let due = Due { what: "the view changed".into(), remedy: "catchword reindex note --all --rewrite".into() };
    let drifted = |f: &mut Standing| f.collections[0].drift = Some(due);
    assert_eq!(found(drifted.clone()), [("CatchwordAuditDrift", Level::Warning)]);
    let mut standing = all_is_well();
    drifted(&mut standing);
    let warned = judge(&standing).into_iter().find(|check| check.level == Level::Warning).unwrap();
    assert_eq!((warned.says.as_str(), warned.remedy.as_str()), ("the view changed", "catchword reindex note --all --rewrite"));
    // what an audit found outweighs it, and hides nothing
    standing.collections[0].audit = Some(Verified { counts: [("content".to_owned(), 3)].into(), ..Verified::default() });
    let drift = judge(&standing).into_iter().filter(|check| check.name == "CatchwordAuditDrift").collect::<Vec<_>>();
    assert_eq!((drift.len(), drift[0].level), (1, Level::Unwell));
    assert!(drift[0].remedy.ends_with("; and the view changed: catchword reindex note --all --rewrite"), "{drift:?}");
}

#[test]
fn spans_are_for_people() {
    for (seconds, said) in [(59.0, "59s"), (3_599.0, "59m 59s"), (3_601.0, "1h"), (90_061.0, "1day 1h")] {
        assert_eq!(span(seconds), said);
    }
    assert_eq!((jobs(1), jobs(2), jobs(CENSUS_LIMIT)), ("1 job".into(), "2 jobs".into(), "about 10000 jobs".into()));
}
