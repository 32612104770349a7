//! The rights of the role that asks: what a worker, an operator or a service needs, and no more. What it needs is read from the script that
//! grants it. And whether our functions are safe from what others plant.

use std::collections::BTreeMap;

use sqlx::{FromRow, PgConnection};

use super::line::{Line, fail, ok, warn};
use crate::Error;

const GRANTS: &str = include_str!("../../migrations/grants.sql");
const RUN: &str = "run migrations/grants.sql, again after each migrate";
const OF_ITS_OWN: &str = "run workers as a role of their own: migrations/grants.sql makes one";

/// A right that grants.sql gives.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    /// Whom: worker, operator, reader or service.
    role: &'static str,
    kind: &'static str,
    object: String,
    privilege: String,
    /// The commands that fail without it.
    breaks: String,
}

#[derive(Clone, Debug, FromRow)]
struct Rights {
    superuser: bool,
    role: String,
    /// Places in the list of rights, from 1.
    missing: Vec<i64>,
    unreadable: Vec<String>,
    writable: Vec<String>,
    sees_sessions: bool,
    /// May the schema's owner see which server this is?
    sees_server: bool,
    /// Functions of ours without a path of their own.
    unpinned: Vec<String>,
    /// Functions in our schema that are another's than the schema's owner.
    strangers: Vec<String>,
    /// Who else may create in our schema.
    creators: Vec<String>,
    /// Functions of views without a path of their own.
    exposed: Vec<String>,
    /// Schemas of the role's path in which others may create.
    open_schemas: Vec<String>,
}

/// What was found, and whether the role may look at the queue at all.
pub(super) async fn look(connection: &mut PgConnection) -> Result<(Vec<Line>, bool), Error> {
    let needed = granted(GRANTS);
    let column = |pick: fn(&Right) -> String| needed.iter().map(pick).collect::<Vec<_>>();
    let rights: Rights = sqlx::query_as(include_str!("rights.sql"))
        .bind(column(|right| right.kind.to_owned()))
        .bind(column(|right| right.object.clone()))
        .bind(column(|right| right.privilege.clone()))
        .fetch_one(connection)
        .await?;
    Ok((judge(&rights, &needed), purpose(&rights, &needed) != "service"))
}

fn judge(rights: &Rights, needed: &[Right]) -> Vec<Line> {
    let purpose = purpose(rights, needed);
    let mut lines = vec![enough(rights, needed, purpose)];
    if purpose != "service" {
        lines.push(not_more(rights));
        lines.push(sessions(rights));
    }
    lines.extend(server(rights));
    lines.push(functions(rights));
    lines.push(view_functions(rights));
    lines
}

/// What the role is for, as far as its rights tell: whoever has a right that only an operator has is meant to be one.
fn purpose(rights: &Rights, needed: &[Right]) -> &'static str {
    let also = |right: &Right, role: &str| {
        needed.iter().any(|other| {
            other.role == role && (other.kind, &other.object, &other.privilege) == (right.kind, &right.object, &right.privilege)
        })
    };
    // has it a right of this role that none of the smaller ones has?
    let is_more_than = |role: &str, smaller: &[&str]| {
        let given = needed.iter().zip(1..).filter(|(right, n)| right.role == role && !rights.missing.contains(n));
        given.into_iter().any(|(right, _)| !smaller.iter().any(|smaller| also(right, smaller)))
    };
    if is_more_than("operator", &["worker", "reader", "service"]) {
        "operator"
    } else if is_more_than("worker", &["reader", "service"]) {
        "worker"
    } else if is_more_than("reader", &["service"]) {
        "reader"
    } else {
        "service"
    }
}

fn enough(rights: &Rights, needed: &[Right], purpose: &str) -> Line {
    // an operator does what a worker does, and more
    let wanted = |right: &Right| right.role == purpose || purpose == "operator" && right.role == "worker";
    // by the commands that fail
    let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (right, n) in needed.iter().zip(1..) {
        if wanted(right) && rights.missing.contains(&n) {
            lacking.entry(&right.breaks).or_default().push(format!("{} on {}", right.privilege, right.object));
        }
    }
    let mut lacking: Vec<String> =
        lacking.into_iter().map(|(breaks, lacks)| format!("{} (without it fails: {breaks})", lacks.join(", "))).collect();
    lacking.extend(rights.unreadable.iter().map(|lacks| format!("{lacks} (without it no document is built)")));
    if !lacking.is_empty() {
        let article = if purpose == "operator" { "an" } else { "a" };
        return fail("enough", format!("the role {} lacks what {article} {purpose} needs: {}", rights.role, lacking.join("; ")), RUN);
    }
    let may = match purpose {
        "operator" => "what an operator does, and what a worker does",
        "worker" => {
            "what a worker does; pause, resume, dead replay, dead discard, dead bury, and reindex cancel, pause, resume and rate need an operator"
        }
        "reader" => {
            "what a reader does: status, check, explain, journal, dead list, serve --read-only; all else needs a worker or an operator"
        }
        _ => "what a service does: store_and_schedule, index_now; every command needs a worker or an operator",
    };
    ok("enough", format!("the role {} may do {may}", rights.role))
}

fn not_more(rights: &Rights) -> Line {
    if rights.superuser {
        return warn("not more", format!("the role {} is a superuser", rights.role), OF_ITS_OWN);
    }
    if !rights.writable.is_empty() {
        let says = format!("the role {} may write {}; a worker only reads", rights.role, rights.writable.join(", "));
        return warn("not more", says, OF_ITS_OWN);
    }
    ok("not more", "it cannot write the attached tables")
}

fn sessions(rights: &Rights) -> Line {
    if rights.sees_sessions {
        return ok("sessions seen", "it sees whose sessions hold vacuum back");
    }
    let says = "it sees its own sessions only: whoever else holds vacuum back stays unknown to check and metrics";
    warn("sessions seen", says, format!("run: grant pg_read_all_stats to {}", rights.role))
}

/// Some managed services keep it to themselves, and nobody there can grant it. Where it is seen, as nearly everywhere, it is not worth a line.
fn server(rights: &Rights) -> Option<Line> {
    let says = "the schema's owner may not see which server this is: after a failover or a restore that lost commits, no audit starts automatically";
    let fix = "after one, run: catchword audit --content --repair; or grant execute on function pg_control_system(), pg_current_wal_lsn(), pg_walfile_name(pg_lsn)";
    (!rights.sees_server).then(|| warn("server seen", says, fix))
}

/// Views are read under the role's own path, because their functions expect it.
fn view_functions(rights: &Rights) -> Line {
    if rights.exposed.is_empty() || rights.open_schemas.is_empty() {
        return ok("view functions", "nothing that others could plant runs in them");
    }
    let (exposed, open) = (some(&rights.exposed), some(&rights.open_schemas));
    let says = format!(
        "{exposed} of a view has no search_path of its own, and others may create in {open}: what they plant there can run as this role"
    );
    warn("view functions", says, "run: alter function … set search_path = …; or revoke create on the schema")
}

fn some(list: &[String]) -> String {
    match list {
        [first, second, third, rest @ ..] if !rest.is_empty() => format!("{first}, {second}, {third} and {} more", rest.len()),
        list => list.join(", "),
    }
}

/// A function without a path of its own runs what others planted in a schema of the caller's path; one that is another's may do anything.
fn functions(rights: &Rights) -> Line {
    if !rights.unpinned.is_empty() {
        let says =
            format!("no search_path of its own: {}; what others plant in a schema of the caller's path runs in it", some(&rights.unpinned));
        return fail("functions", says, "run: alter function … set search_path = pg_catalog, pg_temp; drop what is not catchword's");
    }
    if !rights.strangers.is_empty() {
        let says = format!("not owned by the schema's owner: {}", some(&rights.strangers));
        return fail("functions", says, "find out who made it; drop it, or run: alter function … owner to the schema's owner");
    }
    if !rights.creators.is_empty() {
        let says = format!("{} may create in the schema catchword", some(&rights.creators));
        return fail("functions", says, "run: revoke create on schema catchword from …");
    }
    ok("functions", "every function has its own search_path and belongs to the schema's owner")
}

/// Reads the script: each `grant … on … to :"worker"`, and the commands in brackets before it.
fn granted(script: &str) -> Vec<Right> {
    let mut rights = Vec::new();
    let (mut breaks, mut statement) = (String::new(), String::new());
    for line in script.lines() {
        if let Some(comment) = line.trim_start().strip_prefix("--") {
            let named = comment.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
            if let Some((commands, _)) = named {
                breaks = commands.to_owned();
            }
            continue;
        }
        // a line of psql's own ends a statement as well as a semicolon does
        let (sql, ends) = line.split_once('\\').map_or((line, line.trim_end().ends_with(';')), |(sql, _)| (sql, true));
        statement.push_str(sql);
        statement.push(' ');
        if ends {
            rights.extend(of_statement(statement.trim().trim_end_matches(';'), &breaks));
            statement.clear();
        }
    }
    rights
}

fn of_statement(statement: &str, breaks: &str) -> Vec<Right> {
    let mut rights = Vec::new();
    let role = ["worker", "operator", "reader", "service"].into_iter().find(|role| statement.ends_with(&format!(" to :\"{role}\"")));
    let (Some(role), Some(rest)) = (role, statement.strip_prefix("grant ")) else { return rights };
    let Some((granted, _)) = rest.rsplit_once(" to :\"") else { return rights };
    let Some((privileges, objects)) = granted.split_once(" on ") else { return rights };
    let objects = objects.trim();
    let (kind, objects) = match objects.split_once(' ') {
        Some(("function" | "procedure", objects)) => ("function", objects),
        Some(("sequence", objects)) => ("sequence", objects),
        Some(("schema", objects)) => ("schema", objects),
        _ => ("table", objects),
    };
    for object in outside_parentheses(objects) {
        for privilege in privileges.split(',') {
            let privilege = privilege.trim().to_owned();
            rights.push(Right { role, kind, object: object.clone(), privilege, breaks: breaks.to_owned() });
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
        let rights = granted(GRANTS);
        let has = |role, kind, object: &str, privilege: &str| {
            rights
                .iter()
                .any(|right| (right.role, right.kind, right.object.as_str(), right.privilege.as_str()) == (role, kind, object, privilege))
        };
        assert!(has("worker", "table", "catchword.job", "update") && has("worker", "table", "catchword.job", "delete"), "{rights:?}");
        assert!(
            has("worker", "table", "catchword.collection", "select")
                && has("worker", "table", "catchword._migrations", "select")
                && has("worker", "table", "catchword.worker", "insert"),
            "{rights:?}"
        );
        assert!(!has("worker", "table", "catchword.job", "insert"), "{rights:?}");
        assert!(has("worker", "function", "catchword.touch(text, text[])", "execute"), "{rights:?}");
        assert!(has("worker", "sequence", "catchword.job_id_seq", "select"), "{rights:?}");
        assert!(has("worker", "function", "catchword.run_reindex(bigint, integer)", "execute"), "{rights:?}");
        assert!(has("operator", "function", "catchword.resume(text, text)", "execute"), "{rights:?}");
        assert!(has("service", "schema", "catchword", "usage") && has("service", "table", "catchword.rebuild", "select"), "{rights:?}");
        assert!(!rights.iter().any(|right| right.role == "service" && right.object.contains("job")), "a service sees no jobs: {rights:?}");
        let odd: Vec<_> = rights.iter().filter(|right| !right.object.starts_with("catchword") || right.breaks.is_empty()).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }

    /// A role that has all rights of these, and no others.
    fn of(roles: &[&str], needed: &[Right]) -> Rights {
        let missing = needed.iter().zip(1..).filter(|(right, _)| !roles.contains(&right.role)).map(|(_, n)| n).collect();
        Rights {
            superuser: false,
            role: "w".into(),
            missing,
            unreadable: Vec::new(),
            writable: Vec::new(),
            sees_sessions: true,
            sees_server: true,
            unpinned: Vec::new(),
            strangers: Vec::new(),
            creators: Vec::new(),
            exposed: Vec::new(),
            open_schemas: Vec::new(),
        }
    }

    #[test]
    fn missing_rights_fail_and_too_many_are_a_warning() {
        let needed = granted(GRANTS);
        let well = of(&["worker"], &needed);
        let levels = |rights: Rights| judge(&rights, &needed).iter().map(|line| line.level).collect::<Vec<_>>();
        assert_eq!(levels(well.clone()), [Level::Ok; 5]);
        let lacking = Rights { missing: (1..).take(5).chain(well.missing.clone()).collect(), ..well.clone() };
        assert_eq!(levels(lacking)[0], Level::Fail);
        assert_eq!(levels(Rights { unreadable: vec!["x".into()], ..well.clone() })[0], Level::Fail);
        assert_eq!(levels(Rights { writable: vec!["x".into()], ..well.clone() })[1], Level::Warn);
        assert_eq!(levels(Rights { sees_sessions: false, ..well.clone() })[2], Level::Warn);
        assert_eq!(levels(Rights { sees_server: false, ..well.clone() })[3], Level::Warn);
        assert_eq!(levels(Rights { superuser: true, ..well.clone() })[1], Level::Warn);
        assert_eq!(levels(Rights { unpinned: vec!["x".into()], ..well.clone() })[3], Level::Fail);
        assert_eq!(levels(Rights { strangers: vec!["x".into()], ..well.clone() })[3], Level::Fail);
        assert_eq!(levels(Rights { creators: vec!["public".into()], ..well.clone() })[3], Level::Fail);
        assert_eq!(levels(Rights { exposed: vec!["f()".into()], ..well.clone() })[4], Level::Ok);
        let open = Rights { exposed: vec!["f()".into()], open_schemas: vec!["public".into()], ..well };
        assert_eq!(levels(open)[4], Level::Warn);
    }

    #[test]
    fn a_role_is_judged_by_what_it_is_for_and_a_missing_right_names_what_it_breaks() {
        let needed = granted(GRANTS);
        let says = |rights: &Rights| judge(rights, &needed).remove(0).says;
        assert!(says(&of(&["service"], &needed)).contains("what a service does"));
        assert!(says(&of(&["worker", "service"], &needed)).contains("what a worker does"));
        assert!(says(&of(&["worker", "service", "operator"], &needed)).contains("what an operator does"));
        assert!(says(&of(&["reader"], &needed)).contains("what a reader does"));
        assert!(says(&of(&["reader", "service"], &needed)).contains("what a reader does"));
        let mut operator = of(&["worker", "operator"], &needed);
        let resume = needed.iter().position(|right| right.object.contains("resume")).unwrap() as i64 + 1;
        operator.missing.push(resume);
        let said = says(&operator);
        assert!(said.contains("catchword.resume(text, text) (without it fails: pause, resume)"), "{said}");
    }
}
