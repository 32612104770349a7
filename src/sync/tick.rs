//! The beginning of a tick: one question, however many collections there are, that also is the worker's sign of life.

use serde_json::Value;
use sqlx::Row;
use uuid::Uuid;

use super::{host, say_switched};
use crate::collection::{self, Found};
use crate::database::{Kept, Question};
use crate::{Catchword, Error};

/// What a worker shows of itself, for `status` and the alarms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sign {
    pub id: Uuid,
    pub collections: Vec<String>,
    /// What keeps collections from being worked on.
    pub troubles: Value,
    pub breaker: String,
    /// A pass has succeeded since the last sign.
    pub passed: bool,
}

impl Catchword {
    /// Begins a tick: notes which server this is, reads the collections anew, tends rebuilds and looks for drift, and gives a sign of life.
    /// True: some collection may have jobs that are due; false: none has, and that was the pass.
    pub(super) async fn begin_tick(&self, kept: &Kept, sign: &Sign) -> Result<bool, Error> {
        let inner = &self.inner;
        let question = || collection::bind(sign.bind(sqlx::query(include_str!("tick.sql"))), inner.config.served());
        let rows = kept.ask(&inner.pool, question).await?;
        let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        if first.try_get("standby")? {
            kept.close().await;
            return Err(collection::standby());
        }
        if first.try_get("switched")? {
            say_switched();
        }
        let found = Found::read(&rows, inner.config.served(), &inner.prefix)?;
        let rebuilding = found.rebuilding;
        for (name, broken) in &found.broken {
            sqlx::query(include_str!("note_broken.sql")).bind(name).bind(broken).execute(&inner.pool).await?;
        }
        self.take_in(found).await;
        if rebuilding {
            self.tend_rebuilds().await?;
        }
        self.note_drift().await;
        Ok(!first.try_get::<Vec<String>, _>("due")?.is_empty())
    }

    /// A sign of life and nothing else.
    pub(super) async fn renew(&self, kept: &Kept, sign: &Sign) -> Result<(), Error> {
        kept.ask(&self.inner.pool, || sign.bind(sqlx::query(include_str!("renew_worker.sql")))).await?;
        Ok(())
    }
}

impl Sign {
    fn bind(&self, question: Question) -> Question {
        question
            .bind(self.id)
            .bind(host())
            .bind(env!("CARGO_PKG_VERSION"))
            .bind(self.collections.clone())
            .bind(self.troubles.clone())
            .bind(self.breaker.clone())
            .bind(self.passed)
    }
}
