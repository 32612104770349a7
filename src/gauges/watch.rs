//! What is asked for at each scrape.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use opentelemetry::KeyValue;

use super::observe::{Gauges, Reading};
use super::process;
use crate::audit::{Kind, Verified};
use crate::config;
use crate::context::Context;
use crate::health::{Fault, Scope, State};
use crate::job::Census;
use crate::metrics::names::{
    AUDIT_DIFFERENCES, AUDIT_FINISHED, AUDIT_REPAIRED, AUDIT_RUNNING, BLOCKED, BREAKER, BUILD, CPU, DEAD_TUPLES, FAILING_TOUCHES,
    HELD_BACK, INDEX_BYTES, JOBS, LAST_PASS, LOST_WRITES, MEMORY, NO_PROGRESS, OLDEST_CHANGE, OLDEST_DUE, PAUSED, PAUSED_SECONDS,
    REBUILD_PROGRESS, REBUILD_STAGE, SCHEDULED, SWITCHED, TABLE_BYTES, UP,
};
use crate::metrics::{self, LAST_PASS_AT, Level};
use crate::pause::Pause;
use crate::rebuild::{Stage, UnderWay};
use crate::standing::Topic;

/// Which part of the work this process does, and so which series it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It runs the loop: everything. What Postgres knows of the queue is read at each scrape.
    Worker,
    /// It writes directly: what the direct path does, and how the servers are.
    Application,
}

/// Makes the series of this process. Once per process, after the provider is set.
pub(crate) fn watch(context: &Arc<Context>, gauges: &Arc<Gauges>, part: Part) {
    let process = &Process { context: Arc::downgrade(context), gauges: gauges.clone() };
    let named = |collection: &config::Collection| collection.name.clone();
    let names: Vec<String> = match part {
        Part::Worker => context.config.served().map(named).collect(),
        Part::Application => context.config.collections.iter().map(named).collect(),
    };
    context.config.collections.iter().for_each(|collection| metrics::zero_direct(&collection.name));
    BUILD.watch(|say| say(1.0, &[KeyValue::new("version", env!("CARGO_PKG_VERSION"))]));
    MEMORY.watch(|say| process::resident_bytes().into_iter().for_each(|bytes| say(bytes, &[])));
    CPU.watch(|say| process::cpu_seconds().into_iter().for_each(|seconds| say(seconds, &[])));
    let postgres = gauges.clone();
    ask(&UP, process, move |context, say| {
        say(f64::from(postgres.postgres_is_up()), &[KeyValue::new("server", "postgres")]);
        say(f64::from(context.health.breakers.answers()), &[KeyValue::new("server", "elasticsearch")]);
    });
    let scopes = names.clone();
    ask(&BREAKER, process, move |context, say| {
        let open = |scope| f64::from(context.health.breakers.state(scope) != State::Closed);
        say(open(Scope::Cluster), &[KeyValue::new("scope", "cluster")]);
        for name in &scopes {
            say(open(Scope::Collection(name)), &[KeyValue::new("scope", name.clone())]);
        }
    });
    let blocked = names.clone();
    ask(&BLOCKED, process, move |context, say| {
        let troubles = context.health.faults.worst();
        for name in &blocked {
            // readers miss it: there is no other series by which a person would be told
            let blocked = troubles.contains_key(name) || context.health.faults.why(name, Fault::NotShown).is_some();
            say(f64::from(blocked), &[collection(name)]);
        }
    });
    if part == Part::Worker {
        names.iter().for_each(|name| metrics::zero_loop(name));
        watch_the_queue(process);
    }
    gauges.serve(part);
}

/// Whom the series ask.
struct Process {
    context: Weak<Context>,
    gauges: Arc<Gauges>,
}

/// What only Postgres knows, as it was read just before.
fn watch_the_queue(process: &Process) {
    LAST_PASS.watch(|say| say(LAST_PASS_AT.load(Ordering::Relaxed) as f64, &[]));
    read(&JOBS, process, |reading, say| {
        for (name, census) in reading.censuses() {
            for (state, count) in [("due", census.due), ("waiting", census.waiting), ("dead", census.dead), ("expired", census.expired)] {
                say(count as f64, &[collection(name), KeyValue::new("state", state)]);
            }
        }
    });
    read(&OLDEST_DUE, process, |reading, say| {
        for (name, census) in reading.censuses() {
            for (priority, seconds) in [("live", census.oldest_live_seconds), ("bulk", census.oldest_bulk_seconds)] {
                say(seconds.unwrap_or(0.0), &[collection(name), KeyValue::new("priority", priority)]);
            }
        }
    });
    for (level, of) in [
        (&OLDEST_CHANGE, (|census| census.oldest_change_seconds.unwrap_or(0.0)) as fn(&Census) -> f64),
        (&NO_PROGRESS, |census| census.still_seconds.unwrap_or(0.0)),
        (&FAILING_TOUCHES, |census| census.failing_touches as f64),
    ] {
        read(level, process, move |reading, say| {
            for (name, census) in reading.censuses() {
                say(of(census), &[collection(name)]);
            }
        });
    }
    read(&PAUSED, process, |reading, say| {
        for (name, pause) in reading.pauses() {
            say(f64::from(pause.is_some()), &[collection(name)]);
        }
    });
    read(&PAUSED_SECONDS, process, |reading, say| {
        for (name, pause) in reading.pauses() {
            say(pause.map_or(0.0, |pause| pause.seconds), &[collection(name)]);
        }
    });
    read(&REBUILD_STAGE, process, |reading, say| {
        for (name, rebuild) in reading.rebuilds() {
            for stage in Stage::OPEN {
                let is_in = rebuild.is_some_and(|under_way| under_way.rebuild.stage == stage);
                say(f64::from(is_in), &[collection(name), KeyValue::new("stage", stage.name())]);
            }
        }
    });
    read(&REBUILD_PROGRESS, process, |reading, say| {
        for (name, rebuild) in reading.rebuilds() {
            say(rebuild.map_or(0.0, UnderWay::ratio), &[collection(name)]);
        }
    });
    read(&HELD_BACK, process, |reading, say| {
        for (by, seconds) in &reading.held_back {
            say(*seconds, &[KeyValue::new("by", *by)]);
        }
    });
    watch_the_audits(process);
    read(&SCHEDULED, process, |reading, say| reading.standing.storage.iter().for_each(|storage| say(storage.scheduled as f64, &[])));
    read(&DEAD_TUPLES, process, |reading, say| reading.standing.storage.iter().for_each(|storage| say(storage.dead_tuples as f64, &[])));
    read(&TABLE_BYTES, process, |reading, say| reading.standing.storage.iter().for_each(|storage| say(storage.table_bytes as f64, &[])));
    read(&INDEX_BYTES, process, |reading, say| reading.standing.storage.iter().for_each(|storage| say(storage.index_bytes as f64, &[])));
}

/// A collection that was never audited has differed in nothing, and finished at 0.
fn watch_the_audits(process: &Process) {
    read(&AUDIT_DIFFERENCES, process, |reading, say| {
        for (name, verified) in reading.audits() {
            for kind in Kind::ALL {
                let count = verified.counts.get(kind.name()).copied().unwrap_or(0);
                say(count as f64, &[collection(name), KeyValue::new("kind", kind.name())]);
            }
        }
    });
    read(&AUDIT_FINISHED, process, |reading, say| {
        for (name, verified) in reading.audits() {
            say(verified.finished_at.map_or(0.0, |at| at.timestamp() as f64), &[collection(name)]);
        }
    });
    read(&AUDIT_REPAIRED, process, |reading, say| {
        for (name, verified) in reading.audits() {
            say(verified.repaired as f64, &[collection(name)]);
        }
    });
    read(&AUDIT_RUNNING, process, |reading, say| {
        for (name, verified) in reading.audits() {
            say(f64::from(verified.running), &[collection(name)]);
        }
    });
    read(&SWITCHED, process, |reading, say| {
        for (name, verified) in reading.audits() {
            say(f64::from(verified.switched.is_some()), &[collection(name)]);
        }
    });
    read(&LOST_WRITES, process, |reading, say| {
        for (name, verified) in reading.audits() {
            say(f64::from(verified.lost_lately.is_some()), &[collection(name)]);
        }
    });
}

/// What was read of each collection, by its name. A topic that was not told has no series.
impl Reading {
    fn censuses(&self) -> impl Iterator<Item = (&str, &Census)> {
        self.standing.collections.iter().filter_map(|collection| Some((collection.name.as_str(), collection.census.as_ref()?)))
    }

    fn audits(&self) -> impl Iterator<Item = (&str, &Verified)> {
        self.standing.collections.iter().filter_map(|collection| Some((collection.name.as_str(), collection.audit.as_ref()?)))
    }

    fn pauses(&self) -> impl Iterator<Item = (&str, Option<&Pause>)> {
        let told = self.standing.collections.iter().filter(|_| self.standing.knows(Topic::Pauses));
        told.map(|collection| (collection.name.as_str(), collection.paused.as_ref()))
    }

    fn rebuilds(&self) -> impl Iterator<Item = (&str, Option<&UnderWay>)> {
        let told = self.standing.collections.iter().filter(|_| self.standing.knows(Topic::Rebuilds));
        told.map(|collection| (collection.name.as_str(), collection.rebuild.as_ref()))
    }
}

type Say<'a> = &'a mut dyn FnMut(f64, &[KeyValue]);

/// Asks this process. A handle that is gone has nothing to say.
fn ask(level: &Level, process: &Process, say_of: impl Fn(&Context, Say) + Send + Sync + 'static) {
    let context = process.context.clone();
    level.watch(move |say| {
        if let Some(context) = context.upgrade() {
            say_of(&context, say);
        }
    });
}

/// Asks what was read from Postgres. While it is down the series are absent.
fn read(level: &Level, process: &Process, say_of: impl Fn(&Reading, Say) + Send + Sync + 'static) {
    let gauges = process.gauges.clone();
    ask(level, process, move |_, say| {
        if let Some(reading) = &*gauges.last() {
            say_of(reading, say);
        }
    });
}

fn collection(name: &str) -> KeyValue {
    KeyValue::new("collection", name.to_owned())
}
