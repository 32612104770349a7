//! Who is behind an API key. Postgres is asked at each request, so that a revoked key is refused at once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{Problem, Role, Serve, Via, Who};
use crate::api_key::{self, Kept};
use crate::database;

/// A key is one row by its primary key. Somebody waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// While Postgres does not answer, it is asked so often whether it does; in between nobody waits for it.
const AGAIN: Duration = Duration::from_secs(1);
/// So long a key that was good may still look while Postgres does not answer: whoever is on call needs the page just then. A revocation
/// is in Postgres, so nobody can have made one that Postgres itself does not tell.
const TRUSTED: Duration = Duration::from_secs(3600);
/// Keys that are remembered for that.
const MOST: usize = 1_000;
/// How often it is written down that a key is in use.
const NOTED: Duration = Duration::from_secs(60);

/// What this process knows of keys.
#[derive(Default)]
pub(super) struct Keys {
    /// For the question that every request begins with.
    connection: database::Kept,
    known: Mutex<HashMap<String, Known>>,
    /// When Postgres last did not answer.
    unanswered: Mutex<Option<Instant>>,
}

struct Known {
    kept: Kept,
    seen: Instant,
    noted: Option<Instant>,
}

/// A key that may be used.
pub(super) struct Found {
    pub id: String,
    pub rate: f64,
    pub who: Who,
}

impl Serve {
    /// Whose key this text is. 401: nobody's, or it may not be used any more.
    pub(super) async fn whose_key(&self, text: &str) -> Result<Found, Problem> {
        let id = api_key::id_of(text).ok_or_else(Problem::unauthorized)?;
        let (kept, fresh) = self.kept(id).await?;
        match kept {
            Some(kept) if api_key::is_digest_of(&kept.digest, text) => self.found(kept, fresh, Via::Key),
            _ => Err(Problem::unauthorized()),
        }
    }

    /// Whose session was begun with the key of this id. 401: the key may not be used any more.
    pub(super) async fn whose_session(&self, id: &str) -> Result<Found, Problem> {
        let (kept, fresh) = self.kept(id).await?;
        kept.ok_or_else(Problem::unauthorized).and_then(|kept| self.found(kept, fresh, Via::Session))
    }

    fn found(&self, kept: Kept, fresh: bool, via: Via) -> Result<Found, Problem> {
        let (Some(role), "live") = (Role::named(&kept.role), kept.state.as_str()) else { return Err(Problem::unauthorized()) };
        // what Postgres said some time ago is enough to look and for nothing else
        let role = if fresh && !self.options.read_only { role } else { Role::Reader };
        if fresh {
            self.note_used(&kept.id);
        }
        let who = Who { name: kept.name, role, collections: kept.collections, via, unconfirmed: !fresh };
        Ok(Found { id: kept.id, rate: kept.rate.into(), who })
    }

    /// The key as Postgres has it, and whether it said so just now.
    async fn kept(&self, id: &str) -> Result<(Option<Kept>, bool), Problem> {
        let keys = &self.keys;
        if keys.is_answered_lately() {
            let asked = timeout(PATIENCE, api_key::find(&keys.connection, &self.catchword.context.pool, id));
            match asked.await {
                Ok(Ok(kept)) => {
                    keys.remember(id, kept.as_ref());
                    return Ok((kept, true));
                }
                Ok(Err(error)) if !error.is_absence() => return Err(error.into()),
                _ => keys.note_silence(),
            }
        }
        match keys.last_known(id) {
            Some(kept) => Ok((Some(kept), false)),
            None => Err(Problem::unavailable("Postgres does not answer, so no API key can be checked")),
        }
    }

    /// Writes down that it is in use, once a minute, while nobody waits.
    fn note_used(&self, id: &str) {
        if self.keys.is_to_be_noted(id) {
            let (pool, id) = (self.catchword.context.pool.clone(), id.to_owned());
            tokio::spawn(async move {
                if let Ok(mut connection) = pool.acquire().await
                    && let Err(error) = api_key::note_used(&mut connection, &id).await
                {
                    tracing::debug!("when a key was last used could not be written down: {error}");
                }
            });
        }
    }
}

impl Keys {
    fn remember(&self, id: &str, kept: Option<&Kept>) {
        *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = kept else {
            known.remove(id);
            return;
        };
        if known.len() >= MOST && !known.contains_key(id) {
            known.retain(|_, known| known.seen.elapsed() < TRUSTED);
            if known.len() >= MOST {
                return;
            }
        }
        let noted = known.get(id).and_then(|known| known.noted);
        known.insert(id.to_owned(), Known { kept: kept.clone(), seen: Instant::now(), noted });
    }

    fn last_known(&self, id: &str) -> Option<Kept> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|known| known.seen.elapsed() < TRUSTED).map(|known| known.kept.clone())
    }

    fn is_to_be_noted(&self, id: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = known.get_mut(id) else { return false };
        let due = known.noted.is_none_or(|noted| noted.elapsed() >= NOTED);
        if due {
            known.noted = Some(Instant::now());
        }
        due
    }

    fn is_answered_lately(&self) -> bool {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).is_none_or(|at| at.elapsed() >= AGAIN)
    }

    fn note_silence(&self) {
        *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}
