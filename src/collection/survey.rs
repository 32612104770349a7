//! Looks at a table and its view as a doctor does: at a part, in bounded time.

use std::time::{Duration, Instant};

use sqlx::{Connection, FromRow, PgConnection, Row};

use super::check::{self, Judged};
use super::member::Member;
use super::repair::draw;
use super::statements::{filled, read_view, with_keys};
use super::{Collection, Unbuildable};
use crate::{Error, config};

/// Pages at the table's end, and in the sample: some megabytes.
const TAIL_PAGES: i64 = 100;
const SAMPLE_PAGES: i64 = 200;

/// The highest revision that was found.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct Highest {
    pub highest: Option<i64>,
    /// Rows that were looked at.
    pub looked: i64,
    /// Of the sequence.
    pub last_value: i64,
}

/// How the view serves one batch.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Keys that were asked for.
    pub looked: usize,
    /// Could the plan of the look-up be judged?
    pub plan: Judged,
    /// What is wrong with its columns, its plan, or all of it, and the remedy if there is one.
    pub faults: Vec<(String, Option<String>)>,
    pub unbuildable: Vec<Unbuildable>,
    pub returned: i64,
    pub without_revision: i64,
    pub other_revision: i64,
    /// How long the documents took.
    pub took: Duration,
}

async fn highest_of(connection: &mut PgConnection, member: &Member) -> Result<Highest, Error> {
    let pages = sqlx::query(include_str!("pages.sql")).bind(&member.table).fetch_one(&mut *connection).await?;
    let (largest, together): (Option<i64>, Option<i64>) = (pages.try_get("largest")?, pages.try_get("together")?);
    let tail = format!("({},0)", (largest.unwrap_or(0) - TAIL_PAGES).max(0));
    let share = (SAMPLE_PAGES as f64 * 100.0 / together.unwrap_or(0).max(1) as f64).min(100.0);
    let row = filled(&member.statements.highest).bind(tail).bind(share as f32).fetch_one(connection).await?;
    Ok(Highest::from_row(&row)?)
}

impl Collection {
    /// The highest revision among the newest and some other rows.
    pub async fn highest_revision(&self, connection: &mut PgConnection) -> Result<Highest, Error> {
        let mut all = Highest { highest: None, looked: 0, last_value: 0 };
        for member in &self.members {
            let found = highest_of(&mut *connection, member).await?;
            all = Highest { highest: all.highest.max(found.highest), looked: all.looked + found.looked, last_value: found.last_value };
        }
        Ok(all)
    }

    /// Draws a number for a row as a worker does, in each isolation level, and undoes it. What Postgres said, if it refused.
    pub async fn try_draw(&self, connection: &mut PgConnection) -> Result<Option<String>, Error> {
        let keys = self.keys(&mut *connection, None, None, 1).await?.picked;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        for level in ["set transaction isolation level read committed", "set transaction isolation level serializable"] {
            let mut transaction = connection.begin().await?;
            sqlx::query(level).execute(&mut *transaction).await?;
            let drawn = draw(&mut transaction, &self.name, &keys).await;
            transaction.rollback().await?;
            match drawn {
                Ok(_) => {}
                // somebody's lock says nothing of the table
                Err(error) if error.sqlstate().is_some() && !error.is_too_slow() => return Ok(Some(error.to_string())),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Builds one batch of documents, as a pass does, and looks at what comes.
    pub async fn survey(&self, connection: &mut PgConnection, config: &config::Collection, batch: i64) -> Result<Survey, Error> {
        let keys = self.keys(&mut *connection, None, None, batch).await?.picked;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut survey = Survey {
            looked: keys.len(),
            plan: Judged::TooSmall,
            faults: Vec::new(),
            unbuildable: Vec::new(),
            returned: 0,
            without_revision: 0,
            other_revision: 0,
            took: Duration::ZERO,
        };
        let mut transaction = connection.begin().await?;
        let checked = check::check_reading(&mut transaction, config, self).await;
        transaction.rollback().await?;
        match checked {
            Ok(judged) => survey.plan = judged,
            Err(Error::Refused { what, remedy }) => {
                survey.faults.push((what, remedy));
                return Ok(survey);
            }
            Err(Error::View(why)) => {
                survey.faults.push((why, None));
                return Ok(survey);
            }
            Err(error) => return Err(error),
        }
        let started = Instant::now();
        match self.bodies(connection, &keys).await {
            Ok((_, unbuildable)) => survey.unbuildable = unbuildable,
            Err(Error::View(why)) => {
                survey.faults.push((why, None));
                return Ok(survey);
            }
            Err(error) => return Err(error),
        }
        survey.took = started.elapsed();
        for (member, keys) in self.by_member(&keys) {
            let rows = read_view(connection, with_keys(filled(&member.statements.compared), &self.key_type, &keys)).await?;
            let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
            survey.returned += row.try_get::<i64, _>("returned")?;
            survey.without_revision += row.try_get::<i64, _>("without_revision")?;
            survey.other_revision += row.try_get::<i64, _>("other_revision")?;
        }
        Ok(survey)
    }
}
