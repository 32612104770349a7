//! The sequence of revisions, and the settings of the job table.

use sqlx::{FromRow, PgConnection};

use super::line::{Line, fail, ok, warn};
use crate::{Error, job};

/// Above this no version is believed, and the sequence is never raised beyond it.
const TOO_HIGH: i64 = 1 << 61;

#[derive(Clone, Debug, FromRow)]
struct Sequence {
    increment_by: i64,
    cache_size: i64,
    cycle: bool,
    data_type: String,
    last_value: i64,
    /// The highest number that catchword's own tables remember.
    known: i64,
}

pub(super) async fn look(connection: &mut PgConnection) -> Result<Vec<Line>, Error> {
    let found: Option<Sequence> = sqlx::query_as(include_str!("sequence.sql")).fetch_optional(&mut *connection).await?;
    let options = job::options(connection).await?;
    Ok(vec![sequence(found.as_ref()), storage(&options)])
}

fn sequence(found: Option<&Sequence>) -> Line {
    let Some(sequence) = found else {
        return fail(
            "sequence",
            "the sequence catchword.revision is gone, so every write of an attached table fails",
            "restore it from a backup",
        );
    };
    if sequence.cache_size != 1 {
        let says = format!(
            "its cache is {}: sessions give numbers that are lower than those of others, and old documents stay",
            sequence.cache_size
        );
        return fail("sequence", says, "run: alter sequence catchword.revision cache 1; then catchword reindex --all --rewrite");
    }
    if (sequence.increment_by, sequence.cycle, sequence.data_type.as_str()) != (4, false, "bigint") {
        let says = "it does not go up in steps of four: one number for a row, one for a delete, and two for when the key comes back";
        return fail(
            "sequence",
            says,
            "run: alter sequence catchword.revision as bigint increment 4 no cycle; then catchword reindex --all --rewrite",
        );
    }
    if sequence.last_value % 4 != 0 {
        return fail("sequence", "its last number is no multiple of four, and the others belong to deletes", raise(sequence.last_value));
    }
    if sequence.last_value < sequence.known {
        let says = format!("it is at {}, and {} was given before: numbers are given twice", sequence.last_value, sequence.known);
        return fail("sequence", says, raise(sequence.known));
    }
    if sequence.last_value >= TOO_HIGH {
        return warn("sequence", "it is near its end", "find out who wrote documents with huge versions to an index");
    }
    ok("sequence", format!("cache 1, step 4, at {}", sequence.last_value))
}

/// What lifts the sequence above a number.
pub(super) fn raise(above: i64) -> String {
    format!("run: select catchword.raise_revision({above}); then catchword reindex --all --rewrite")
}

fn storage(options: &[String]) -> Line {
    let has = |wanted: &str| options.iter().any(|option| option == wanted);
    if has("autovacuum_enabled=false") || has("autovacuum_enabled=off") {
        return fail("job table", "autovacuum is off for it: settled jobs pile up as dead rows", job::REPAIR_OPTIONS);
    }
    if !has("autovacuum_vacuum_scale_factor=0") || !has("autovacuum_vacuum_cost_delay=0") {
        return warn(
            "job table",
            "it is vacuumed like any other table, but all its rows are inserted and deleted: claims get slower",
            job::REPAIR_OPTIONS,
        );
    }
    ok("job table", "vacuumed after about two batches, at full speed")
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;

    #[test]
    fn the_sequence_steps_by_four_uncached_and_is_never_behind() {
        let well = Sequence { increment_by: 4, cache_size: 1, cycle: false, data_type: "bigint".into(), last_value: 20, known: 20 };
        let level = |change: fn(&mut Sequence)| {
            let mut changed = well.clone();
            change(&mut changed);
            sequence(Some(&changed)).level
        };
        assert_eq!(level(|_| {}), Level::Ok);
        assert_eq!(level(|s| s.cache_size = 32), Level::Fail);
        assert_eq!(level(|s| s.increment_by = 2), Level::Fail);
        assert_eq!(level(|s| s.cycle = true), Level::Fail);
        assert_eq!(level(|s| s.last_value = 22), Level::Fail);
        assert_eq!(level(|s| s.last_value = 16), Level::Fail);
        assert_eq!(level(|s| s.last_value = 1 << 61), Level::Warn);
        assert_eq!(sequence(None).level, Level::Fail);
    }

    #[test]
    fn the_job_table_has_vacuum_settings_of_its_own() {
        let level = |options: &[&str]| storage(&options.iter().map(|o| (*o).to_owned()).collect::<Vec<_>>()).level;
        let whole = ["autovacuum_vacuum_scale_factor=0", "autovacuum_vacuum_cost_delay=0"];
        assert_eq!(level(&whole), Level::Ok);
        assert_eq!(level(&[]), Level::Warn);
        assert_eq!(level(&[whole[0], whole[1], "autovacuum_enabled=false"]), Level::Fail);
    }
}
