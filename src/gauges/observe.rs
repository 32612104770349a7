//! What only Postgres knows, read just before a scrape or an export and never in between: an idle worker asks nothing for its metrics.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio::time::{Instant, timeout};

use super::stood_still::StoodStill;
use super::watch::Part;
use crate::context::Context;
use crate::standing::{Standing, Topic};
use crate::{Error, database};

/// A scrape waits this long for Postgres; then it answers without.
const LIMIT: Duration = Duration::from_secs(2);
/// Scrapes within this share one reading.
const FRESH: Duration = Duration::from_secs(1);

/// What is read.
const TOPICS: [Topic; 6] = [Topic::Census, Topic::Audits, Topic::Pauses, Topic::Rebuilds, Topic::Storage, Topic::Vacuum];

/// The last reading, and who reads.
#[derive(Default)]
pub(crate) struct Gauges {
    reader: tokio::sync::Mutex<Reader>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    part: Option<Part>,
    up: bool,
    reading: Option<Reading>,
}

/// A connection beside the pool: a scrape neither waits for a direct write nor holds one up, and learns at once that Postgres is down.
#[derive(Default)]
struct Reader {
    connection: Option<PgConnection>,
    read_at: Option<Instant>,
    stood_still: StoodStill,
}

/// What was read. A topic that Postgres refused to tell is absent.
#[derive(Default)]
pub(super) struct Reading {
    pub standing: Standing,
    /// Who holds vacuum back, and for how long.
    pub held_back: Vec<(&'static str, f64)>,
}

/// Reads for the gauges what only Postgres knows: before each scrape and each export. Takes two seconds at most, whatever happens to
/// Postgres; calls within a second share one reading.
pub(crate) async fn observe(context: &Context, gauges: &Gauges) {
    let Some(part) = gauges.lock().part else { return };
    // one at a time; who waited for another's reading takes it
    let Ok(mut reader) = timeout(LIMIT, gauges.reader.lock()).await else { return };
    if reader.read_at.is_some_and(|at| at.elapsed() < FRESH) {
        return;
    }
    // taken out, so that a reading that is cut short closes its connection
    let (connection, mut stood_still) = (reader.connection.take(), std::mem::take(&mut reader.stood_still));
    let read = timeout(LIMIT, read(context, connection, part, &mut stood_still)).await;
    let (connection, reading) = match read {
        Ok(Ok((connection, reading))) => (Some(connection), Some(reading)),
        Ok(Err(error)) => {
            tracing::debug!("postgres could not be read for the metrics: {error}");
            (None, None)
        }
        Err(_) => (None, None),
    };
    *reader = Reader { connection, stood_still, read_at: Some(Instant::now()) };
    let mut last = gauges.lock();
    last.up = reading.is_some();
    last.reading = reading;
}

async fn read(
    context: &Context,
    kept: Option<PgConnection>,
    part: Part,
    stood_still: &mut StoodStill,
) -> Result<(PgConnection, Reading), Error> {
    let mut connection = match answering(kept).await {
        Some(kept) => kept,
        None => database::beside(&context.pool, LIMIT).await?,
    };
    if part == Part::Application {
        return Ok((connection, Reading::default()));
    }
    let mut standing = Standing::of(context.config.served());
    standing.read_what_is_told(context, &mut connection, &TOPICS).await?;
    let held_back = match standing.knows(Topic::Vacuum) {
        true => stood_still.held_back(&standing.holders, Instant::now()),
        false => Vec::new(),
    };
    Ok((connection, Reading { standing, held_back }))
}

/// The connection of the last reading, if it still answers.
async fn answering(kept: Option<PgConnection>) -> Option<PgConnection> {
    let mut kept = kept?;
    kept.ping().await.ok().map(|()| kept)
}

impl Gauges {
    pub(super) fn serve(&self, part: Part) {
        self.lock().part = Some(part);
    }

    pub(super) fn postgres_is_up(&self) -> bool {
        self.lock().up
    }

    pub(super) fn last(&self) -> impl Deref<Target = Option<Reading>> + '_ {
        struct Locked<'a>(MutexGuard<'a, Last>);
        impl Deref for Locked<'_> {
            type Target = Option<Reading>;
            fn deref(&self) -> &Option<Reading> {
                &self.0.reading
            }
        }
        Locked(self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
