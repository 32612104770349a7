//! An attached table: triggers, what else may write into it, revisions against the sequence, indexes for scopes.

use std::collections::BTreeSet;

use sqlx::{FromRow, PgConnection};

use super::line::{Line, fail, ok, warn};
use super::schema::raise;
use crate::collection::{Collection, Highest, Lost, own_statement};
use crate::{Error, config};

/// Below this a whole table is read in a moment, and needs no index.
const SMALL: f64 = 10_000.0;

#[derive(Clone, Debug, FromRow)]
struct Table {
    name: String,
    partition: bool,
    partitioned: bool,
    inherits: bool,
    unlogged: bool,
    replicated_into: bool,
    /// Tables that have row security: its own, and others that the view reads.
    secured: Vec<String>,
    unindexed: Vec<String>,
    rows: f64,
}

pub(super) async fn look(connection: &mut PgConnection, config: &config::Collection, attached: &Collection) -> Result<Vec<Line>, Error> {
    let searched = config.scopes.values().chain(&config.period);
    let searched: Vec<&String> = searched.collect::<BTreeSet<_>>().into_iter().collect();
    let table: Table = sqlx::query_as(include_str!("table.sql")).bind(&config.name).bind(&searched).fetch_one(&mut *connection).await?;
    let problems: Vec<String> = attached.problems.iter().cloned().chain(attached.not_served()).collect();
    let (hidden, others): (Vec<String>, Vec<String>) =
        problems.iter().cloned().partition(|problem| problem.starts_with("row security of "));
    let mut lines = triggers(&others);
    lines.push(configured(&attached.unmigrated));
    lines.extend([shape(&table), replication(&table), indexes(&table)]);
    lines.extend(security(&table, &hidden));
    lines.extend(related(&attached.ways_back(connection).await?));
    match attached.highest_revision(connection).await {
        Ok(highest) => lines.push(revisions(&highest)),
        // a column that the lines above miss
        Err(error) if error.sqlstate().is_some() && !problems.is_empty() => {}
        Err(error) => return Err(error),
    }
    Ok(lines)
}

/// Each problem that a worker would refuse the collection for, with what helps.
fn triggers(problems: &[String]) -> Vec<Line> {
    if problems.is_empty() {
        return vec![ok("triggers", "in place, enabled, and ours is the last to give the row its number")];
    }
    let fix = |problem: &str| {
        if problem.contains(" fires after ") {
            "give that trigger a name that sorts before zzz_catchword_: alter trigger … rename to …"
        } else if problem.starts_with("the configuration says") {
            "correct the configuration, or run: catchword migrate, then catchword reindex --all"
        } else {
            "run: catchword migrate, then catchword reindex --all"
        }
    };
    let line = |problem: &String| match own_statement(problem) {
        (says, Some(sql)) => fail("triggers", says, format!("run: {sql}; then a worker audits it")),
        (says, None) => fail("triggers", says, fix(says)),
    };
    problems.iter().map(line).collect()
}

/// Triggers do what they were made for: without the new `touches` or `watch` documents stay as they were.
fn configured(unmigrated: &[String]) -> Line {
    if unmigrated.is_empty() {
        return ok("configured", "the database has what the configuration says");
    }
    let says = format!("{}: the configuration and the database differ", unmigrated.join(", "));
    let rests_on = |what: &String| ["touches", "watch", "revision"].contains(&what.as_str());
    match unmigrated.iter().any(rests_on) {
        true => fail("configured", says, "run: catchword migrate"),
        false => warn("configured", says, "run: catchword migrate"),
    }
}

fn shape(table: &Table) -> Line {
    let name = &table.name;
    let says = match (table.partition, table.inherits, table.unlogged) {
        (true, _, _) => format!("{name} is a partition: writes to the table above it bypass the triggers"),
        (_, true, _) => format!("{name} inherits or is inherited from: rows of the others bypass the triggers"),
        (_, _, true) => format!("{name} is unlogged: its rows do not survive a crash, their documents do"),
        _ if table.partitioned => return ok("plain table", format!("{name} is partitioned, and its partitions are plain tables")),
        _ => return ok("plain table", format!("{name} is a plain table")),
    };
    fail("plain table", says, "catchword detach, then attach a plain table that is logged")
}

fn replication(table: &Table) -> Line {
    if table.replicated_into {
        return fail(
            "writers",
            format!("a subscription writes into {}, and what it writes schedules no jobs", table.name),
            "attach the table where its rows are written first, or take it out of the subscription",
        );
    }
    ok("writers", "no subscription writes past the triggers")
}

/// A policy that applies to a reader, with the statement that lets the reader see every row. Row security stays on.
fn security(table: &Table, hidden: &[String]) -> Vec<Line> {
    if hidden.is_empty() {
        return vec![match table.secured.as_slice() {
            [] => ok("row security", "no policy hides rows from the view"),
            secured => ok("row security", format!("{} has policies, and none applies to catchword's readers", secured.join(", "))),
        }];
    }
    let line = |problem: &String| {
        let (says, sql) = own_statement(problem);
        fail("row security", says, format!("leave row security on, and run: {}", sql.unwrap_or("catchword migrate")))
    };
    hidden.iter().map(line).collect()
}

fn revisions(highest: &Highest) -> Line {
    let looked = format!("of {} rows that were looked at", highest.looked);
    match highest.highest {
        Some(seen) if seen > highest.last_value => fail(
            "revisions",
            format!("a row has {seen}, and the sequence is at {}: its next writes look older than what is indexed", highest.last_value),
            raise(seen),
        ),
        Some(seen) if seen % 2 != 0 => fail(
            "revisions",
            format!("a row has the odd revision {seen}, which is a delete's"),
            "find out who writes that column besides the trigger; then catchword reindex --all --rewrite",
        ),
        Some(seen) => ok("revisions", format!("none above the sequence: the highest is {seen} {looked}")),
        None => ok("revisions", format!("none yet {looked}: all rows have the collection's floor")),
    }
}

/// Each way back from a related table, at any size of the table: it grows without asking again.
fn related(lost: &[Lost]) -> Vec<Line> {
    if lost.is_empty() {
        return vec![ok("related", "an index leads from each related table back to the rows")];
    }
    let line = |lost: &Lost| match lost.fails {
        true => fail("related", &lost.says, &lost.fix),
        false => warn("related", &lost.says, &lost.fix),
    };
    lost.iter().map(line).collect()
}

fn indexes(table: &Table) -> Line {
    match table.unindexed.as_slice() {
        [] => ok("indexes", "one for each column that scopes and period search"),
        unindexed if table.rows < SMALL => {
            ok("indexes", format!("the table is small; when it grows, {} needs an index: reindexes search by it", unindexed.join(", ")))
        }
        unindexed => warn(
            "indexes",
            format!("no index begins with {}: each reindex by it reads the whole of {}", unindexed.join(", "), table.name),
            format!("run: create index concurrently on {} ({})", table.name, unindexed[0]),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;

    fn table() -> Table {
        Table {
            name: "note".into(),
            partition: false,
            partitioned: false,
            inherits: false,
            unlogged: false,
            replicated_into: false,
            secured: Vec::new(),
            unindexed: Vec::new(),
            rows: 1e6,
        }
    }

    #[test]
    fn a_plain_table_that_only_triggers_see_is_ok() {
        for judged in [shape(&table()), replication(&table()), indexes(&table()), security(&table(), &[]).remove(0)] {
            assert_eq!(judged.level, Level::Ok, "{judged:?}");
        }
        assert_eq!(triggers(&[])[0].level, Level::Ok);
        let level = |what: &[&str]| configured(&what.iter().map(|what| (*what).to_owned()).collect::<Vec<_>>()).level;
        assert_eq!((level(&[]), level(&["delay"]), level(&["delay", "watch"])), (Level::Ok, Level::Warn, Level::Fail));
        assert_eq!(shape(&Table { partitioned: true, ..table() }).level, Level::Ok);
        for changed in [Table { partition: true, ..table() }, Table { inherits: true, ..table() }, Table { unlogged: true, ..table() }] {
            assert_eq!(shape(&changed).level, Level::Fail, "{changed:?}");
        }
        assert_eq!(replication(&Table { replicated_into: true, ..table() }).level, Level::Fail);
        let secured = Table { secured: vec!["document".into()], ..table() };
        assert_eq!(security(&secured, &[])[0].level, Level::Ok);
        let hidden = security(&secured, &["row security of document applies to the role w; run \"alter role w bypassrls\"".into()]);
        assert_eq!((hidden[0].level, hidden[0].fix.as_str()), (Level::Fail, "leave row security on, and run: alter role w bypassrls"));
        assert_eq!(indexes(&Table { unindexed: vec!["userid".into()], ..table() }).level, Level::Warn);
        assert_eq!(indexes(&Table { unindexed: vec!["userid".into()], rows: 9.0, ..table() }).level, Level::Ok);
    }

    #[test]
    fn a_row_above_the_sequence_or_with_an_odd_number_fails() {
        let level = |highest| revisions(&Highest { highest, looked: 9, last_value: 20 }).level;
        assert_eq!(level(None), Level::Ok);
        assert_eq!(level(Some(20)), Level::Ok);
        assert_eq!(level(Some(22)), Level::Fail);
        assert_eq!(level(Some(19)), Level::Fail);
    }
}
