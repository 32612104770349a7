//! The rights of the role that asks: what a worker needs, and no more. What it needs is read from the script that grants it.

use sqlx::{FromRow, PgConnection};

use super::line::{Line, fail, ok, warn};
use crate::Error;

const GRANTS: &str = include_str!("../../migrations/grants.sql");
const RUN: &str = "run migrations/grants.sql, again after each migrate";

/// A right that grants.sql gives a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    kind: &'static str,
    object: String,
    privilege: String,
}

#[derive(Clone, Debug, FromRow)]
struct Rights {
    superuser: bool,
    role: String,
    missing: Vec<String>,
    unreadable: Vec<String>,
    writable: Vec<String>,
    sees_sessions: bool,
}

pub(super) async fn look(connection: &mut PgConnection) -> Result<Vec<Line>, Error> {
    let needed = of_a_worker(GRANTS);
    let column = |pick: fn(&Right) -> String| needed.iter().map(pick).collect::<Vec<_>>();
    let rights: Rights = sqlx::query_as(include_str!("rights.sql"))
        .bind(column(|right| right.kind.to_owned()))
        .bind(column(|right| right.object.clone()))
        .bind(column(|right| right.privilege.clone()))
        .fetch_one(connection)
        .await?;
    Ok(judge(&rights))
}

fn judge(rights: &Rights) -> Vec<Line> {
    let lacking: Vec<&str> = rights.missing.iter().chain(&rights.unreadable).map(String::as_str).collect();
    let enough = match lacking.as_slice() {
        [] => ok("enough", format!("the role {} may do what a worker does", rights.role)),
        lacking => fail("enough", format!("the role {} lacks {}", rights.role, lacking.join(", ")), RUN),
    };
    let not_more = if rights.superuser {
        warn(
            "not more",
            format!("the role {} is a superuser", rights.role),
            "run workers as a role of their own: migrations/grants.sql makes one",
        )
    } else if !rights.writable.is_empty() {
        let says = format!("the role {} may write {}; a worker only reads", rights.role, rights.writable.join(", "));
        warn("not more", says, "run workers as a role of their own: migrations/grants.sql makes one")
    } else {
        ok("not more", "it cannot write the attached tables")
    };
    let sessions = if rights.sees_sessions {
        ok("sessions seen", "it sees whose sessions hold vacuum back")
    } else {
        let says = "it sees its own sessions only: whoever else holds vacuum back stays unknown to check and metrics";
        warn("sessions seen", says, format!("run: grant pg_read_all_stats to {}", rights.role))
    };
    vec![enough, not_more, sessions]
}

/// Reads the script: each `grant … on … to :"worker"`.
fn of_a_worker(script: &str) -> Vec<Right> {
    // a line of psql's own ends a statement as well as a semicolon does
    let code = script.lines().filter(|line| !line.trim_start().starts_with("--"));
    let code: String = code.map(|line| line.split_once('\\').map_or_else(|| format!("{line} "), |(sql, _)| format!("{sql};"))).collect();
    let mut rights = Vec::new();
    for statement in code.split(';') {
        let Some(rest) = statement.trim().strip_prefix("grant ") else { continue };
        let Some((granted, _)) = rest.split_once(" to :\"worker\"") else { continue };
        let Some((privileges, objects)) = granted.split_once(" on ") else { continue };
        let objects = objects.trim();
        let (kind, objects) = match objects.split_once(' ') {
            Some(("function" | "procedure", objects)) => ("function", objects),
            Some(("sequence", objects)) => ("sequence", objects),
            _ => ("table", objects),
        };
        for object in outside_parentheses(objects) {
            for privilege in privileges.split(',') {
                rights.push(Right { kind, object: object.clone(), privilege: privilege.trim().to_owned() });
            }
        }
    }
    rights
}

/// The parts between commas that stand in no parentheses.
fn outside_parentheses(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;

    #[test]
    fn the_script_is_read_as_postgres_reads_it() {
        let rights = of_a_worker(GRANTS);
        let has =
            |kind, object: &str, privilege: &str| rights.contains(&Right { kind, object: object.into(), privilege: privilege.into() });
        assert!(has("table", "catchword.job", "update") && has("table", "catchword.job", "delete"), "{rights:?}");
        assert!(
            has("table", "catchword.collection", "select")
                && has("table", "catchword._migrations", "select")
                && has("table", "catchword.worker", "insert"),
            "{rights:?}"
        );
        assert!(!has("table", "catchword.job", "insert"), "{rights:?}");
        assert!(has("function", "catchword.touch(text, text[], boolean)", "execute"), "{rights:?}");
        assert!(has("sequence", "catchword.job_id_seq", "select"), "{rights:?}");
        assert!(has("function", "catchword.run_reindex(bigint, integer)", "execute"), "{rights:?}");
        let odd: Vec<_> = rights.iter().filter(|right| !right.object.starts_with("catchword.")).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }

    #[test]
    fn missing_rights_fail_and_too_many_are_a_warning() {
        let well = Rights {
            superuser: false,
            role: "w".into(),
            missing: Vec::new(),
            unreadable: Vec::new(),
            writable: Vec::new(),
            sees_sessions: true,
        };
        let levels = |rights: Rights| judge(&rights).iter().map(|line| line.level).collect::<Vec<_>>();
        assert_eq!(levels(well.clone()), [Level::Ok; 3]);
        assert_eq!(levels(Rights { missing: vec!["x".into()], ..well.clone() })[0], Level::Fail);
        assert_eq!(levels(Rights { unreadable: vec!["x".into()], ..well.clone() })[0], Level::Fail);
        assert_eq!(levels(Rights { superuser: true, ..well.clone() })[1], Level::Warn);
        assert_eq!(levels(Rights { writable: vec!["x".into()], ..well.clone() })[1], Level::Warn);
        assert_eq!(levels(Rights { sees_sessions: false, ..well })[2], Level::Warn);
    }
}
