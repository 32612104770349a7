//! What is written down of a rebuild.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::{FromRow, PgConnection, PgPool};

use super::Request;
use crate::Error;
use crate::context::Context;
use crate::elastic::Target;

/// Where a rebuild is, in the order of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Stage {
    /// The new index is made. Nothing else knows of it yet.
    Create,
    /// It is a target; every key is scheduled.
    Fill,
    /// The loop works these jobs.
    Drain,
    /// It is made fit for readers, and an audit of it must find nothing.
    Verify,
    /// The readers' alias moves to it.
    Swap,
    /// The readers' alias moves to the one they do not see.
    Back,
    /// The one that readers do not see is kept in step until its time comes.
    Keep,
    /// It is no target any more, and goes.
    Drop,
    /// The new index is no target any more, and goes.
    Abort,
    Done,
    Aborted,
}

impl Stage {
    /// All of them; the metric shows each that is not over.
    pub const OPEN: [Stage; 9] =
        [Stage::Create, Stage::Fill, Stage::Drain, Stage::Verify, Stage::Swap, Stage::Back, Stage::Keep, Stage::Drop, Stage::Abort];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Create => "create",
            Stage::Fill => "fill",
            Stage::Drain => "drain",
            Stage::Verify => "verify",
            Stage::Swap => "swap",
            Stage::Back => "back",
            Stage::Keep => "keep",
            Stage::Drop => "drop",
            Stage::Abort => "abort",
            Stage::Done => "done",
            Stage::Aborted => "aborted",
        }
    }

    /// Why this cannot be done now, and what can.
    pub(super) fn cannot(self, what: &str, collection: &str) -> Error {
        let (why, remedy) = match self {
            Stage::Keep => ("the readers' alias has moved already", Some(format!("go back with: catchword rebuild {collection} --back"))),
            Stage::Drop | Stage::Done => ("it is finished, and the old index is being dropped", None),
            Stage::Abort | Stage::Aborted => {
                ("it is being undone", Some(format!("finish that with: catchword rebuild {collection} --abort")))
            }
            _ => (
                "the readers' alias has not moved yet",
                Some(format!("go on with: catchword rebuild {collection}, or undo it: catchword rebuild {collection} --abort")),
            ),
        };
        Error::Refused { what: format!("the rebuild of {collection} is in its stage {}, so it cannot {what}: {why}", self.name()), remedy }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rebuild, as it is written down.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Rebuild {
    pub id: i64,
    pub collection: String,
    pub stage: Stage,
    pub old_index: String,
    pub new_index: String,
    #[serde(skip)]
    pub(super) mapping: Value,
    pub keep_seconds: f64,
    /// The collection's targets now, the readers' first.
    pub targets: Vec<String>,
    #[serde(skip)]
    pub(super) held_index: Option<String>,
    #[serde(skip)]
    pub(super) held_refresh: Option<String>,
    pub started_at: DateTime<Utc>,
    pub started_by: String,
    /// For how long it has been in its stage.
    pub stage_seconds: f64,
    pub drop_at: Option<DateTime<Utc>>,
    /// Has its time come?
    pub overdue: bool,
    /// Does a process work on it?
    pub driven: bool,
    /// Jobs that the filling scheduled.
    pub scheduled: i64,
    /// How many keys the filling has, if they were counted.
    pub expected: Option<i64>,
    /// The reindex that fills the new index, once it has begun.
    pub reindex: Option<i64>,
}

impl Rebuild {
    /// Who asked, in the jobs that fill the new index.
    pub fn tag(&self) -> String {
        format!("reindex.rebuild.{}", self.id)
    }

    pub(super) fn old_target(&self) -> Target {
        Target::new(&self.old_index)
    }

    pub(super) fn new_target(&self) -> Target {
        Target::new(&self.new_index)
    }

    /// Is the index that readers do not see to be kept, and its time not over?
    pub(super) fn is_kept(&self) -> bool {
        self.keep_seconds > 0.0 && !self.overdue
    }

    /// Do readers still see the old index, and only because it is not through yet?
    pub fn is_before_the_swap(&self) -> bool {
        matches!(self.stage, Stage::Create | Stage::Fill | Stage::Drain | Stage::Verify | Stage::Swap)
    }

    /// How many jobs the filling has, as far as that is known.
    pub(super) fn keys(&self) -> i64 {
        self.expected.unwrap_or(0).max(self.scheduled)
    }

    /// The one of its two indices that readers do not see.
    pub fn kept_index(&self) -> &str {
        if self.targets.first() == Some(&self.old_index) { &self.new_index } else { &self.old_index }
    }

    /// May the same command go on with it? What was begun with another mapping is not taken for this one.
    pub(super) fn goes_on(self, request: &Request) -> Result<Rebuild, Error> {
        let name = &self.collection;
        if self.stage == Stage::Keep && self.is_kept() {
            let (until, kept) = (self.drop_at.map(|at| at.format("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default(), self.kept_index());
            return Err(Error::refused_with(
                format!("the last rebuild of {name} still keeps {kept}, until {until}"),
                format!("drop it first: catchword rebuild {name} --drop"),
            ));
        }
        match &request.mapping {
            Some(mapping) if *mapping != self.mapping => Err(Error::refused_with(
                format!("a rebuild of {name} with another mapping is not finished"),
                format!("go on with that one: catchword rebuild {name}, or undo it: catchword rebuild {name} --abort"),
            )),
            _ => Ok(self),
        }
    }
}

/// The rebuild of a collection that is not over, if there is one.
pub(crate) async fn unfinished_rebuild(context: &Context, collection: &str) -> Result<Option<Rebuild>, Error> {
    let mut connection = context.pool.acquire().await?;
    Ok(unfinished(&mut connection, &[collection]).await?.into_iter().next())
}

/// The rebuilds of these collections that are not over.
pub async fn unfinished(connection: &mut PgConnection, collections: &[&str]) -> Result<Vec<Rebuild>, Error> {
    Ok(sqlx::query_as(include_str!("unfinished.sql")).bind(collections).bind(None::<i64>).fetch_all(connection).await?)
}

/// One, also if it is over.
pub(super) async fn read(pool: &PgPool, id: i64) -> Result<Rebuild, Error> {
    let found = sqlx::query_as(include_str!("unfinished.sql")).bind(None::<Vec<String>>).bind(id).fetch_optional(pool).await?;
    found.ok_or_else(|| Error::refused("the rebuild is gone: its collection was detached"))
}

pub(super) async fn begin(pool: &PgPool, request: &Request, index: &Target, mapping: &Value) -> Result<i64, Error> {
    Ok(sqlx::query_scalar(include_str!("begin.sql"))
        .bind(&request.collection)
        .bind(index.index())
        .bind(mapping)
        .bind(request.keep.as_secs_f64())
        .bind(&request.who)
        .fetch_one(pool)
        .await?)
}

pub(super) async fn step(pool: &PgPool, id: i64, from: Stage, to: Stage, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.rebuild_step($1, $2, $3, $4)")
        .bind(id)
        .bind(from.name())
        .bind(to.name())
        .bind(who)
        .fetch_one(pool)
        .await?)
}

/// Writes down whose refresh is about to be held.
pub(super) async fn hold(pool: &PgPool, id: i64, index: &Target, refresh: Option<&str>) -> Result<(), Error> {
    sqlx::query("select catchword.rebuild_hold($1, $2, $3)").bind(id).bind(index.index()).bind(refresh).execute(pool).await?;
    Ok(())
}

/// Writes down that nothing is held any more.
pub(super) async fn release(pool: &PgPool, id: i64) -> Result<(), Error> {
    sqlx::query("select catchword.rebuild_release($1)").bind(id).execute(pool).await?;
    Ok(())
}

/// Forgets a rebuild whose index was refused: nothing was changed.
pub(super) async fn forget(pool: &PgPool, id: i64) -> Result<(), Error> {
    sqlx::query("select catchword.rebuild_forget($1)").bind(id).execute(pool).await?;
    Ok(())
}

/// The longest that an old index may be kept: nobody goes back after a year.
pub const LONGEST_KEEP: Duration = Duration::from_secs(366 * 24 * 3600);
