//! Who works: jobs that nobody serves, workers of another version.

use sqlx::PgConnection;

use super::line::{Line, ok, warn};
use crate::heartbeat::{WorkerRow, workers};
use crate::{Error, job};

pub(super) async fn look(connection: &mut PgConnection, configured: &[String]) -> Result<Vec<Line>, Error> {
    let living: Vec<WorkerRow> = workers(connection).await?.into_iter().filter(WorkerRow::is_alive).collect();
    let elsewhere = living.iter().flat_map(|worker| worker.collections.iter().cloned());
    let served: Vec<String> = configured.iter().cloned().chain(elsewhere).collect();
    let unserved = job::unserved(connection, &served).await?;
    let ahead = job::dated_ahead(connection, configured).await?;
    let mut lines = judge(&unserved, &living, env!("CARGO_PKG_VERSION"));
    lines.push(clock(&ahead));
    Ok(lines)
}

/// Jobs that were made while Postgres' clock was ahead.
fn clock(ahead: &[String]) -> Line {
    match ahead {
        [] => ok("clock", "no job is dated in the future"),
        ahead => warn(
            "clock",
            format!("{} has jobs that are dated in the future, because Postgres' clock was ahead", ahead.join(", ")),
            "keep that clock right (ntp); a worker makes them due at its next tick",
        ),
    }
}

fn judge(unserved: &[String], living: &[WorkerRow], version: &str) -> Vec<Line> {
    let served = match unserved {
        [] => ok("served", "no jobs of a collection that nobody serves"),
        unserved => warn(
            "served",
            format!("{} has jobs, is not in this configuration, and no living worker serves it: these jobs wait", unserved.join(", ")),
            "start the worker whose configuration has it; only if nobody needs it any more: catchword detach NAME, which deletes its jobs",
        ),
    };
    let other = living.iter().find(|worker| worker.version != version);
    let versions = match other {
        None => ok("workers", format!("{} living, all of this version", living.len())),
        Some(worker) => warn(
            "workers",
            format!("the worker on {} is of version {}, this is {version}", worker.host, worker.version),
            "restart it with this version",
        ),
    };
    vec![served, versions]
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;

    #[test]
    fn jobs_that_nobody_serves_and_old_workers_are_worth_a_word() {
        let worker = |version: &str| WorkerRow {
            id: uuid::Uuid::nil(),
            host: "h".into(),
            version: version.into(),
            collections: Vec::new(),
            blocked: serde_json::Value::Null,
            breaker: "closed".into(),
            trouble: None,
            lane: None,
            seen_seconds_ago: 1.0,
            passed_seconds_ago: 1.0,
        };
        let levels =
            |unserved: &[String], living: &[WorkerRow]| judge(unserved, living, "2").iter().map(|line| line.level).collect::<Vec<_>>();
        assert_eq!(levels(&[], &[]), [Level::Ok, Level::Ok]);
        assert_eq!(levels(&["x".into()], &[worker("2")]), [Level::Warn, Level::Ok]);
        assert_eq!(levels(&[], &[worker("1")]), [Level::Ok, Level::Warn]);
        assert_eq!((clock(&[]).level, clock(&["x".into()]).level), (Level::Ok, Level::Warn));
    }
}
