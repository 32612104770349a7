//! A table that cannot be looked at because somebody has locked it: who does is told, and the rest is looked at all the same.

use sqlx::{FromRow, PgConnection};

use super::line::{Line, fail};
use crate::Error;

/// A lock that keeps others from a table.
#[derive(Clone, Debug, FromRow)]
struct Lock {
    relation: String,
    pid: i32,
    role: Option<String>,
    state: Option<String>,
    seconds: Option<f64>,
}

/// Why a collection could not be looked at in time.
pub(super) async fn look(connection: &mut PgConnection, error: &Error) -> Result<Line, Error> {
    let locks: Vec<Lock> = sqlx::query_as(include_str!("locked_by.sql")).fetch_all(connection).await?;
    Ok(judge(&locks, error))
}

fn judge(locks: &[Lock], error: &Error) -> Line {
    if locks.is_empty() {
        let says = format!("it, or a table that its view reads, could not be looked at in time: {error}");
        return fail("locked", says, "repeat it; if it stays so, look for what keeps that table busy: select * from pg_stat_activity");
    }
    let held: Vec<String> = locks.iter().map(Lock::to_string).collect();
    let says = format!("it could not be looked at in time, because somebody holds a lock: {}", held.join("; "));
    fail("locked", says, "wait until it ends, or end it: select pg_terminate_backend(PID); then repeat this")
}

impl std::fmt::Display for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by process {}", self.relation, self.pid)?;
        if let Some(role) = &self.role {
            write!(f, " of {role}")?;
        }
        if let Some(seconds) = self.seconds {
            write!(f, " for {seconds:.0} s")?;
        }
        self.state.as_ref().map_or(Ok(()), |state| write!(f, " ({state})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_lock_is_named_as_far_as_it_is_known() {
        let error = Error::refused("canceling statement due to lock timeout");
        let mina = Lock {
            relation: "public.note".into(),
            pid: 7,
            role: Some("mina".into()),
            state: Some("idle in transaction".into()),
            seconds: Some(61.4),
        };
        let other = Lock { pid: 8, role: None, state: None, seconds: None, ..mina.clone() };
        let says = judge(&[mina, other], &error).says;
        assert!(says.ends_with("public.note by process 7 of mina for 61 s (idle in transaction); public.note by process 8"), "{says}");
        assert!(judge(&[], &error).says.ends_with("canceling statement due to lock timeout"));
    }
}
