//! What runs: reindexes, audits and rebuilds, each with a bar and an estimate.

use super::seen::Glance;
use super::state::State;
use super::text;
use super::words::{count, left, of};
use crate::audit::Shown;
use crate::rebuild::{Stage, UnderWay};
use crate::reindex::{self, Progress};
use crate::serve::Who;

/// Something that runs.
#[derive(Clone)]
pub(super) struct Run {
    pub state: State,
    pub title: String,
    pub href: String,
    /// None: nobody knows how much there is.
    pub percent: Option<u8>,
    pub left: Option<String>,
    pub detail: String,
}

/// Everything that runs, as far as somebody may see it.
pub(super) fn running(glance: &Glance, who: &Who) -> Vec<Run> {
    let beside = glance.beside.as_ref();
    let reindexes = beside.into_iter().flat_map(|beside| &beside.reindexes);
    let audits = beside.into_iter().flat_map(|beside| &beside.audits);
    let status = || glance.status.iter().flat_map(|status| &status.collections);
    let documents = |name: &str| status().find(|collection| collection.name == name).and_then(|collection| collection.documents);
    let rebuilds = status().filter_map(|collection| collection.rebuild.as_ref());
    let reindexes = reindexes.filter(|run| is_open(run.state) && who.sees(&run.collection)).map(of_reindex);
    let rebuilds = rebuilds.filter(|run| run.rebuild.stage != Stage::Keep && who.sees(&run.rebuild.collection)).map(of_rebuild);
    let audits = audits.filter(|run| who.sees(&run.report.collection) && matches!(run.state.as_str(), "running" | "asked"));
    reindexes.chain(rebuilds).chain(audits.map(|run| of_audit(run, documents(&run.report.collection)))).collect()
}

pub(super) fn is_open(state: reindex::State) -> bool {
    matches!(state, reindex::State::Running | reindex::State::Paused)
}

/// A reindex. Its end is when its jobs are through, not when the last one is scheduled.
pub(super) fn of_reindex(run: &Progress) -> Run {
    let done = run.settled + run.dead;
    let paused = run.state == reindex::State::Paused;
    let limit = run.rate.map_or(String::new(), |rate| format!(", at most {} a second", count(rate.into())));
    let speed = run.per_second.filter(|_| !paused).map_or(String::new(), |n| format!(", {} a second", count(n.round() as i64)));
    let dead = if run.dead > 0 { format!(", {} given up", count(run.dead)) } else { String::new() };
    Run {
        state: if paused { State::Paused } else { State::InStep },
        title: format!("Reindex {} of {}: {}", run.id, run.collection, text::line(&run.what)),
        href: format!("/reindexes/{}", run.id),
        percent: run.expected.map(|all| percent(done, all.max(run.scheduled))),
        left: if paused { Some("paused".into()) } else { run.seconds_left.map(left) },
        detail: format!(
            "{} of {} through{dead}{speed}{limit} · asked for by {}",
            count(done),
            run.expected.map_or("some".into(), count),
            text::line(super::journal::person(&run.started_by))
        ),
    }
}

fn of_rebuild(run: &UnderWay) -> Run {
    let rebuild = &run.rebuild;
    let through = match rebuild.stage {
        Stage::Drain => format!(", {} of {} through", count(run.through as i64), count(rebuild.scheduled)),
        _ => String::new(),
    };
    let driven = if rebuild.driven { "" } else { ", and nobody works on it" };
    Run {
        state: if rebuild.driven { State::InStep } else { State::Paused },
        title: format!("Rebuild of {}", rebuild.collection),
        href: "/rebuilds".into(),
        percent: matches!(rebuild.stage, Stage::Drain).then(|| (run.ratio() * 100.0).clamp(0.0, 100.0) as u8),
        left: run.seconds_left.map(left),
        detail: format!("{} to {}, stage {}{through}{driven}", rebuild.old_index, rebuild.new_index, rebuild.stage),
    }
}

/// An audit looks at every key, and then at every document: about twice as many as there are documents.
pub(super) fn of_audit(run: &Shown, documents: Option<u64>) -> Run {
    let (report, asked) = (&run.report, run.state == "asked");
    let looked = report.looked as i64;
    let all = documents.map(|documents| (documents as i64).saturating_mul(2)).filter(|all| *all > 0 && report.sample.is_none());
    let found = match report.differ() {
        0 => String::new(),
        differ => format!(", {}", of(differ as i64, "difference")),
    };
    Run {
        state: if asked { State::Paused } else { State::InStep },
        title: format!("Audit {} of {}", report.audit, report.collection),
        href: text::link("/audits", &[("collection", &report.collection)]),
        percent: if asked { Some(0) } else { all.map(|all| percent(looked, all.max(looked + 1))) },
        left: asked.then(|| "a worker begins it within a minute".into()),
        detail: format!(
            "{} looked at{found} · asked for by {} ({})",
            of(looked, "key"),
            text::line(super::journal::person(&run.asked_by)),
            text::line(&run.reason)
        ),
    }
}

/// Whole per cent; all of it only when it is all.
pub(super) fn percent(done: i64, all: i64) -> u8 {
    match (done, all) {
        (_, ..=0) => 100,
        (done, all) if done >= all => 100,
        (done, all) => ((done.max(0) as f64 / all as f64 * 100.0).floor() as u8).min(99),
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_bar_is_full_only_at_the_end() {
        assert_eq!((percent(0, 10), percent(9_999, 10_000), percent(10, 10), percent(0, 0), percent(-1, 4)), (0, 99, 100, 100, 0));
    }
}
