//! The server and its settings.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgConnection};

use super::line::{Line, fail, ok, warn};
use crate::Error;
use crate::config::{Config, Environment};
use crate::migrate::UTF8;

/// What the migrations and the statements are written for; older ones get no fixes from Postgres itself.
const OLDEST: i32 = 140_000;
/// An idle connection of the pool is ended by the server below this, and each tick begins with a new one.
const IDLE_SECONDS: f64 = 120.0;
/// Times in the queue are Postgres' alone. Beyond this, logs of different machines no longer fit together.
const CLOCK_SECONDS: f64 = 5.0;

#[derive(Clone, Debug, FromRow)]
struct Server {
    version: String,
    version_number: i32,
    standby: bool,
    encoding: String,
    synchronous_commit: String,
    replication_role: String,
    /// Settings of roles and databases that differ, in words.
    defaults: Vec<String>,
    fsync: bool,
    full_page_writes: bool,
    autovacuum: bool,
    settings_stay: bool,
    idle_session_seconds: Option<f64>,
    free_connections: i64,
    ssl: bool,
    clock: DateTime<Utc>,
}

pub(super) async fn look(connection: &mut PgConnection, environment: &Environment, config: &Config) -> Result<Vec<Line>, Error> {
    let asked = Utc::now();
    let server: Server = sqlx::query_as(include_str!("postgres.sql")).fetch_one(connection).await?;
    let answered = Utc::now();
    let mut lines = judge(&server, i64::try_from(config.worker.in_flight).unwrap_or(4) + 8);
    lines.push(clock("postgres", seconds(asked, server.clock, answered)));
    lines.push(tls(environment.database_url.is_remote(), server.ssl));
    Ok(lines)
}

/// How far a clock that was read between two looks at ours is off; 0 if it may be right.
pub(super) fn seconds(asked: DateTime<Utc>, theirs: DateTime<Utc>, answered: DateTime<Utc>) -> f64 {
    let off = if theirs < asked { asked - theirs } else { (theirs - answered).max(chrono::TimeDelta::zero()) };
    off.as_seconds_f64()
}

pub(super) fn clock(whose: &str, off: f64) -> Line {
    if off > CLOCK_SECONDS {
        return warn("clock", format!("the clock of {whose} and this machine's differ by {off:.0} s"), "run a time service on both");
    }
    ok("clock", format!("the clock of {whose} and this machine's agree"))
}

fn tls(remote: bool, ssl: bool) -> Line {
    match (remote, ssl) {
        (false, _) => ok("tls", "postgres is on this machine"),
        (true, true) => ok("tls", "the connection to postgres is encrypted"),
        (true, false) => {
            warn("tls", "everything goes to postgres in clear text", "leave --insecure out, and give the server a certificate")
        }
    }
}

fn judge(server: &Server, needed: i64) -> Vec<Line> {
    vec![
        version(server),
        primary(server),
        encoding(server),
        replication_role(server),
        synchronous_commit(server),
        disk(server),
        vacuum(server),
        limits(server, needed),
    ]
}

fn version(server: &Server) -> Line {
    if server.version_number < OLDEST {
        return fail("version", format!("this is Postgres {}", server.version), "catchword needs 14 or newer: upgrade the server");
    }
    ok("version", format!("Postgres {}", server.version))
}

fn primary(server: &Server) -> Line {
    if server.standby {
        return fail("primary", "this is a standby: what it shows is not what was committed", "set DATABASE_URL to the primary");
    }
    ok("primary", "it is the primary")
}

fn encoding(server: &Server) -> Line {
    if server.encoding != UTF8 {
        let says = format!("the database has the encoding {}: a key that is not UTF-8 stops its collection", server.encoding);
        return fail("encoding", says, "create a database with encoding 'UTF8', and move the data there by pg_dump");
    }
    ok("encoding", "the database is in UTF-8")
}

/// Ordinary triggers do not fire for a session whose role is `replica`: its writes leave no jobs.
fn replication_role(server: &Server) -> Line {
    let roles: Vec<&str> = server.defaults.iter().filter(|said| said.starts_with("session_replication_role")).map(String::as_str).collect();
    if server.replication_role == "replica" || !roles.is_empty() {
        let says = if roles.is_empty() { "session_replication_role=replica for everybody".into() } else { roles.join(", ") };
        return fail(
            "writes seen",
            format!("{says}: triggers do not fire, so writes schedule no jobs"),
            "reset it (alter role … reset session_replication_role, alter database … reset session_replication_role), then catchword reindex --all --rewrite",
        );
    }
    ok("writes seen", "no role writes with its triggers off by default")
}

fn synchronous_commit(server: &Server) -> Line {
    let others: Vec<&str> = server.defaults.iter().filter(|said| said.starts_with("synchronous_commit")).map(String::as_str).collect();
    let lost = "a crash can lose commits that Elasticsearch already shows";
    match server.synchronous_commit.as_str() {
        "off" => fail("commits stay", format!("synchronous_commit is off: {lost}"), "set it to on for whoever writes attached tables"),
        _ if !others.is_empty() => {
            warn("commits stay", format!("{}: {lost}", others.join(", ")), "reset it for roles that write attached tables")
        }
        "local" => warn(
            "commits stay",
            "synchronous_commit is local: a failover can lose commits that Elasticsearch already shows",
            "set it to on",
        ),
        mode => ok("commits stay", format!("synchronous_commit is {mode}")),
    }
}

fn disk(server: &Server) -> Line {
    let off: Vec<&str> = [("fsync", server.fsync), ("full_page_writes", server.full_page_writes)]
        .iter()
        .filter(|(_, on)| !on)
        .map(|(name, _)| *name)
        .collect();
    if off.is_empty() {
        return ok("disk", "fsync and full_page_writes are on");
    }
    let says = format!("{} is off: a crash of the machine can lose or break what was committed", off.join(" and "));
    warn("disk", says, "turn it on, except on a server for tests")
}

fn vacuum(server: &Server) -> Line {
    if !server.autovacuum {
        return fail("autovacuum", "autovacuum or track_counts is off: settled jobs pile up as dead rows", "turn both on");
    }
    ok("autovacuum", "autovacuum is on")
}

fn limits(server: &Server, needed: i64) -> Line {
    if !server.settings_stay {
        return fail(
            "sessions",
            "the settings of a session do not stay: the limits and row_security = off that the promises rest on are lost",
            "connect directly, or through a pooler in session mode",
        );
    }
    match server.idle_session_seconds {
        Some(seconds) if seconds < IDLE_SECONDS => warn(
            "sessions",
            format!("idle_session_timeout is {seconds:.0} s: each tick begins with new connections"),
            "raise it to 2 minutes or more for this role",
        ),
        _ if server.free_connections < needed => {
            let says = format!("{} connections are free, a worker takes up to {needed}", server.free_connections.max(0));
            warn("sessions", says, "raise max_connections, or lower what others take")
        }
        _ => ok("sessions", format!("settings stay, {} connections are free", server.free_connections)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;

    fn server() -> Server {
        Server {
            version: "18.1".into(),
            version_number: 180_001,
            standby: false,
            encoding: "UTF8".into(),
            synchronous_commit: "on".into(),
            replication_role: "origin".into(),
            defaults: Vec::new(),
            fsync: true,
            full_page_writes: true,
            autovacuum: true,
            settings_stay: true,
            idle_session_seconds: None,
            free_connections: 90,
            ssl: false,
            clock: Utc::now(),
        }
    }

    fn found(change: impl FnOnce(&mut Server)) -> Vec<(&'static str, Level)> {
        let mut server = server();
        change(&mut server);
        judge(&server, 10).into_iter().filter(|line| line.level != Level::Ok).map(|line| (line.what, line.level)).collect()
    }

    #[test]
    fn each_setting_that_a_promise_rests_on_is_judged() {
        use Level::{Fail, Warn};
        assert_eq!(found(|_| {}), []);
        assert_eq!(found(|s| s.version_number = 130_012), [("version", Fail)]);
        assert_eq!(found(|s| s.standby = true), [("primary", Fail)]);
        assert_eq!(found(|s| s.encoding = "SQL_ASCII".into()), [("encoding", Fail)]);
        assert_eq!(found(|s| s.replication_role = "replica".into()), [("writes seen", Fail)]);
        assert_eq!(found(|s| s.defaults = vec!["session_replication_role=replica of role app".into()]), [("writes seen", Fail)]);
        assert_eq!(found(|s| s.synchronous_commit = "off".into()), [("commits stay", Fail)]);
        assert_eq!(found(|s| s.synchronous_commit = "local".into()), [("commits stay", Warn)]);
        assert_eq!(found(|s| s.defaults = vec!["synchronous_commit=off of role app".into()]), [("commits stay", Warn)]);
        assert_eq!(found(|s| s.fsync = false), [("disk", Warn)]);
        assert_eq!(found(|s| s.autovacuum = false), [("autovacuum", Fail)]);
        assert_eq!(found(|s| s.settings_stay = false), [("sessions", Fail)]);
        assert_eq!(found(|s| s.idle_session_seconds = Some(30.0)), [("sessions", Warn)]);
        assert_eq!(found(|s| s.idle_session_seconds = Some(600.0)), []);
        assert_eq!(found(|s| s.free_connections = 9), [("sessions", Warn)]);
    }

    #[test]
    fn a_clock_is_off_only_by_what_the_journey_cannot_explain() {
        let at = |seconds: i64| DateTime::from_timestamp(1_000_000 + seconds, 0).unwrap();
        assert_eq!(seconds(at(0), at(1), at(2)), 0.0);
        assert_eq!(seconds(at(0), at(9), at(2)), 7.0);
        assert_eq!(seconds(at(0), at(-9), at(2)), 9.0);
        assert_eq!((clock("x", 4.0).level, clock("x", 6.0).level), (Level::Ok, Level::Warn));
    }

    #[test]
    fn clear_text_to_another_machine_is_a_warning() {
        let level = |remote, ssl| tls(remote, ssl).level;
        assert_eq!((level(false, false), level(true, true), level(true, false)), (Level::Ok, Level::Ok, Level::Warn));
    }
}
