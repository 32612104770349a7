//! The view: does it return what it should, in time, and is every change of it noticed?

use std::time::Duration;

use sqlx::PgConnection;

use super::line::{Line, fail, ok, warn};
use crate::Error;
use crate::collection::{Collection, Judged, Survey};
use crate::config::{self, Config};

/// A look at a batch has this long; then the batch is halved until it fits.
const LIMIT: Duration = Duration::from_secs(10);
/// With two batches in flight a pass still ends in its time.
const SLOW: Duration = Duration::from_secs(3);

pub(super) async fn look(
    connection: &mut PgConnection,
    config: &config::Collection,
    attached: &Collection,
    whole: &Config,
) -> Result<Vec<Line>, Error> {
    let survey = attached.survey(connection, config, i64::from(whole.worker.batch)).await?;
    let mut lines = judge(&survey, &config.view);
    lines.push(watched(attached));
    lines.extend(attached.doubts(connection).await?.sentences().into_iter().map(|(says, fix)| warn("steady", says, fix)));
    Ok(lines)
}

/// Is every table that the view reads the collection's own, in `touches`, or waived?
fn watched(attached: &Collection) -> Line {
    match attached.unwatched_sentence() {
        None => ok("tables", "a change of any table that the view reads reaches its documents, or is waived"),
        Some(says) => fail(
            "tables",
            says,
            "add touches = [{ table, column, row_column }], or unwatched = […] if documents may be older than it; then: catchword migrate",
        ),
    }
}

fn judge(survey: &Survey, view: &str) -> Vec<Line> {
    if let Some((says, remedy)) = survey.faults.first() {
        let fix = remedy.as_deref().unwrap_or("fix the view, or its owner's rights");
        return vec![fail("shape", says, fix)];
    }
    vec![
        ok("shape", format!("{view} returns key, revision and body of the right types{}", by_index(survey.plan))),
        keys(survey),
        buildable(survey),
        revisions(survey),
        time(survey),
    ]
}

/// Not judged is no fault: doctor tells more once there are rows.
fn by_index(plan: Judged) -> &'static str {
    match plan {
        Judged::ByPlan => ", by index",
        Judged::TooSmall => "; the table is small, so how the view reads it is not judged",
    }
}

fn keys(survey: &Survey) -> Line {
    let twice: Vec<&str> =
        survey.unbuildable.iter().filter(|fault| fault.error.contains("more than once")).map(|fault| fault.key.as_str()).collect();
    match twice.as_slice() {
        [] => ok("unique keys", format!("one document per key, of {} rows that were looked at", survey.looked)),
        [first, ..] => fail(
            "unique keys",
            format!("{} of {} keys come more than once, for instance {first}: their jobs become dead letters", twice.len(), survey.looked),
            "join related rows by a scalar subselect or lateral … limit 1",
        ),
    }
}

fn buildable(survey: &Survey) -> Line {
    let failing: Vec<_> = survey.unbuildable.iter().filter(|fault| !fault.error.contains("more than once")).collect();
    match failing.as_slice() {
        [] => ok("documents", "each one that was looked at can be built"),
        [first, ..] => fail(
            "documents",
            format!("{} of {} cannot be built, for instance {}: {}", failing.len(), survey.looked, first.key, first.error),
            "fix the rows or the view; until then their jobs become dead letters",
        ),
    }
}

/// A row that nobody wrote since it was attached has no revision, and its collection's floor.
fn revisions(survey: &Survey) -> Line {
    if survey.other_revision > 0 {
        return fail(
            "revision",
            format!("{} of {} rows show another revision in the view than their own", survey.other_revision, survey.returned),
            "as revision, select the attached table's own revision column",
        );
    }
    let share = 100 * survey.without_revision / survey.returned.max(1);
    ok("revision", format!("the row's own; {share} % of {} have none yet and the collection's floor", survey.returned))
}

fn time(survey: &Survey) -> Line {
    let says = format!("{} documents took {:.1} s", survey.looked, survey.took.as_secs_f64());
    let fix = "give the related tables indexes, or set a smaller batch in [worker]";
    match survey.took {
        took if took > LIMIT => fail("time", format!("{says}: a look has 10 s"), fix),
        took if took > SLOW => warn("time", format!("{says}: a pass has 10 s for all it does"), fix),
        _ => ok("time", says),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;
    use crate::collection::Unbuildable;

    fn found(change: impl FnOnce(&mut Survey)) -> Vec<(&'static str, Level)> {
        let mut survey = Survey {
            looked: 9,
            plan: Judged::ByPlan,
            faults: Vec::new(),
            unbuildable: Vec::new(),
            returned: 9,
            without_revision: 9,
            other_revision: 0,
            took: Duration::from_millis(7),
        };
        change(&mut survey);
        judge(&survey, "note_document").into_iter().filter(|line| line.level != Level::Ok).map(|line| (line.what, line.level)).collect()
    }

    #[test]
    fn a_view_is_judged_by_what_it_returns_and_how_fast() {
        let fault = |error: &str| vec![Unbuildable { key: "7".into(), error: error.into() }];
        assert_eq!(found(|_| {}), []);
        assert_eq!(found(|s| s.looked = 0), []);
        assert_eq!(found(|s| s.faults = vec![("no column key".into(), Some("correct it".into()))]), [("shape", Level::Fail)]);
        assert_eq!(found(|s| s.unbuildable = fault("the view returns this key more than once")), [("unique keys", Level::Fail)]);
        assert_eq!(found(|s| s.unbuildable = fault("division by zero")), [("documents", Level::Fail)]);
        assert_eq!(found(|s| s.other_revision = 1), [("revision", Level::Fail)]);
        assert_eq!(found(|s| s.took = Duration::from_secs(4)), [("time", Level::Warn)]);
        assert_eq!(found(|s| s.took = Duration::from_secs(11)), [("time", Level::Fail)]);
    }
}
