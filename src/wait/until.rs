//! The wait: which revision is meant, then look, search, and again a little later.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::judge::{Seen, is_committed, is_shown, seen};
use super::together::{Found, Together};
use super::{Became, Until, Waited};
use crate::collection::{Collection, no_id};
use crate::context::{Context, probe_in_background, refresh_in_background};
use crate::elastic::{Has, MOST_FOUND};
use crate::health::{Fault, Scope, State};
use crate::{Error, look};

/// Keys in one wait at most: as many as `catchword.known` takes.
const MOST_KEYS: usize = 1_000;
/// The time after the first look. It doubles up to [`SLOWEST`]: what is not there after a few looks waits for a refresh or for the loop.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// A quarter of the usual `refresh_interval`.
const SLOWEST: Duration = Duration::from_millis(250);
/// What the first look may take, also where the limit is shorter: with a limit of 0 it is all that is done.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// How often it is asked again whether a key was given up; twice as long each time, up to ten times.
const DEAD_AGAIN: Duration = Duration::from_secs(1);
/// How old what is known of the collections may be: as for direct writes.
const REFRESH: Duration = Duration::from_secs(30);
/// The longest limit: a wait is somebody's open request.
const LONGEST: Duration = Duration::from_secs(3600);

/// All who wait in this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Waits {
    context: Arc<Context>,
    looks: Arc<Together<Has>>,
    searches: Arc<Together<i64>>,
}

/// One key, and how far it came.
struct Key {
    name: String,
    revision: Option<i64>,
    /// The reason of a dead letter.
    letter: Option<String>,
    became: Became,
}

impl Waits {
    pub fn new(context: Arc<Context>) -> Waits {
        Waits { context, looks: Arc::default(), searches: Arc::default() }
    }

    pub async fn wait_until(&self, name: &str, keys: Vec<String>, until: Until, limit: Duration) -> Result<Vec<Waited>, Error> {
        let started = Instant::now();
        let ends = started + limit.min(LONGEST);
        let asked = self.check(name, &keys)?;
        refresh_in_background(&self.context, REFRESH);
        let answer_by = ends.max(started + FIRST_LOOK);
        let (by_asked, mut waited) = timeout_at(answer_by, self.known(name, &asked)).await.map_err(|_| too_late())??;
        let (mut pause, mut dead_again) = (FIRST_PAUSE, DEAD_AGAIN);
        // the first answer says who has a letter
        let mut ask_dead = if waited.iter().any(|key| key.letter.is_some()) { started } else { started + DEAD_AGAIN };
        let mut told = started;
        loop {
            _ = timeout_at(answer_by, self.look(name, &mut waited, until)).await;
            let is_last = Instant::now() >= ends && told.elapsed() > SLOWEST;
            if ask_dead <= Instant::now() || is_last {
                _ = timeout_at(answer_by + FIRST_LOOK, self.note_dead(name, &mut waited)).await;
                (told, ask_dead) = (Instant::now(), Instant::now() + dead_again);
                dead_again = (dead_again * 2).min(DEAD_AGAIN * 10);
            }
            if Instant::now() >= ends || waited.iter().all(|key| key.is_done(until)) {
                break;
            }
            sleep_until(ends.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(SLOWEST);
        }
        let of = |asked: &String| {
            let key = by_asked.get(asked).and_then(|name| waited.iter().find(|key| key.name == *name));
            key.map(|key| Waited { key: asked.clone(), revision: key.revision, became: key.became.clone() })
        };
        Ok(keys.iter().filter_map(of).collect())
    }

    /// Refuses what cannot be waited for; the keys, each once.
    fn check(&self, name: &str, keys: &[String]) -> Result<Vec<String>, Error> {
        self.context.config.collection(Some(name))?;
        if self.context.collection(name).is_none() {
            let why = self.context.health.faults.why(name, Fault::NotServed).unwrap_or_else(|| "its table is not attached".into());
            return Err(Error::refused_with(format!("collection {name} is not served here: {why}"), "run: catchword doctor"));
        }
        let asked: BTreeSet<&String> = keys.iter().collect();
        if asked.len() > MOST_KEYS {
            return Err(Error::refused_with(
                format!("{} keys are too many for one wait", asked.len()),
                format!("wait for {MOST_KEYS} at most"),
            ));
        }
        match keys.iter().find_map(|key| Some((key, no_id(key)?))) {
            Some((key, fault)) => Err(Error::refused(format!("{key:?} cannot be waited for: {fault}"))),
            None => Ok(asked.into_iter().cloned().collect()),
        }
    }

    /// The keys with the revisions that they have now, and which of them each asked text means.
    async fn known(&self, name: &str, asked: &[String]) -> Result<(HashMap<String, String>, Vec<Key>), Error> {
        let rows = sqlx::query(include_str!("known.sql")).bind(name).bind(asked).fetch_all(&self.context.pool).await?;
        let (mut by_asked, mut keys) = (HashMap::new(), Vec::<Key>::new());
        for row in rows {
            let name: String = row.try_get("key")?;
            by_asked.insert(row.try_get("asked")?, name.clone());
            if !keys.iter().any(|key| key.name == name) {
                let became = Became::Waiting("nothing is known of the index yet".into());
                keys.push(Key { revision: row.try_get("revision")?, letter: row.try_get("dead")?, name, became });
            }
        }
        Ok((by_asked, keys))
    }

    /// One look, and for what is there one search. If the index cannot be asked, each key gets the reason.
    async fn look(&self, name: &str, waited: &mut [Key], until: Until) {
        let Some(collection) = self.context.collection(name) else { return };
        let open = |key: &&mut Key| !key.is_done(until);
        if let Some(why) = self.why_not_ask(&collection) {
            return waited.iter_mut().filter(open).for_each(|key| key.wait(&why));
        }
        let names: Vec<String> = waited.iter().filter(|key| !key.is_done(until)).map(|key| key.name.clone()).collect();
        let keys: Vec<&str> = names.iter().map(String::as_str).collect();
        let ids = match collection.ids(&self.context.pool, &keys).await {
            Ok(ids) => ids,
            Err(error) => return waited.iter_mut().filter(open).for_each(|key| key.wait(&error.to_string())),
        };
        let ids: HashMap<&str, String> = keys.iter().map(|key| (*key, ids.of(key).into_owned())).collect();
        let has = self.look_at(&collection, ids.values().cloned().collect()).await;
        let mut there = Vec::new();
        for key in waited.iter_mut().filter(open) {
            let saw = match has.as_ref() {
                Ok(has) => seen(key.revision, has.get(&ids[&*key.name]).unwrap_or(&Has::Unknown("no answer".into()))),
                Err(why) => Seen::NotYet(why.clone()),
            };
            match saw {
                Seen::NotYet(why) => key.wait(&paused_or(&collection, &why)),
                Seen::There(version) => there.push((key, version, Became::Indexed)),
                Seen::Later(version) => there.push((key, Some(version), Became::Superseded)),
            }
        }
        if there.is_empty() || !self.is_readers_index(&collection, &mut there).await {
            return;
        }
        self.note_ahead(name, &mut there).await;
        let found = match until {
            Until::Indexed => return there.into_iter().for_each(|(key, _, became)| key.became = became),
            Until::Searchable => self.search(&collection, there.iter().map(|(key, ..)| ids[&*key.name].clone()).collect()).await,
        };
        for (key, version, became) in there {
            let is_shown = found.as_ref().as_ref().is_ok_and(|found| is_shown(version, found.get(&ids[&*key.name]).copied()));
            key.became = match (is_shown, became) {
                (true, Became::Indexed) => Became::Searchable,
                (true, became) => became,
                (false, _) => Became::Indexed,
            };
        }
    }

    /// Why Elasticsearch is not asked now; none: it is.
    fn why_not_ask(&self, collection: &Arc<Collection>) -> Option<String> {
        if let Some(why) = self.context.health.faults.why(&collection.name, Fault::Unverified) {
            return Some(why);
        }
        for scope in [Scope::Cluster, Scope::Collection(&collection.name)] {
            match self.context.health.breakers.state(scope) {
                State::Closed => {}
                State::Open(why) => return Some(paused_or(collection, &why)),
                State::ProbeDue => {
                    // a process that only waits would otherwise never hear that it is over
                    probe_in_background(&self.context, collection);
                    return Some("a probe is under way".into());
                }
            }
        }
        None
    }

    async fn look_at(&self, collection: &Arc<Collection>, ids: Vec<String>) -> Found<Has> {
        let Some(readers) = collection.readers_target().cloned() else { return Arc::new(Err("it has no index yet".into())) };
        let elastic = self.context.elastic.clone();
        let ask = move |ids: Vec<String>| {
            let (elastic, readers) = (elastic.clone(), readers.clone());
            async move {
                let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
                let has = elastic.look(&readers, &asked, look::LIMIT).await.map_err(|answer| answer.to_string())?;
                Ok(ids.into_iter().zip(has).collect())
            }
        };
        let place = collection.readers_target().map_or("", |target| target.index());
        self.looks.ask(place, ids, MOST_KEYS, ask).await
    }

    async fn search(&self, collection: &Arc<Collection>, ids: Vec<String>) -> Found<i64> {
        let (elastic, alias) = (self.context.elastic.clone(), collection.alias.clone());
        let ask = move |ids: Vec<String>| {
            let (elastic, alias) = (elastic.clone(), alias.clone());
            async move {
                let mut found = HashMap::new();
                for part in ids.chunks(MOST_FOUND) {
                    let part: Vec<&str> = part.iter().map(String::as_str).collect();
                    found.extend(elastic.found(&alias, &part, look::LIMIT).await.map_err(|answer| answer.to_string())?);
                }
                Ok(found)
            }
        };
        self.searches.ask(&collection.alias, ids, MOST_KEYS, ask).await
    }

    /// Was it the readers' index that was looked at? Asked behind the look: a rebuild may have moved the readers meanwhile, and then it
    /// says nothing.
    async fn is_readers_index(&self, collection: &Collection, there: &mut [(&mut Key, Option<i64>, Became)]) -> bool {
        let current = async { collection.targets_are_current(&mut *self.context.pool.acquire().await?).await };
        let why = match current.await {
            Ok(true) => return true,
            Ok(false) => {
                refresh_in_background(&self.context, Duration::ZERO);
                "its index is being rebuilt, and this process has just heard of it".to_owned()
            }
            Err(error) => error.to_string(),
        };
        there.iter_mut().for_each(|(key, ..)| key.wait(&why));
        false
    }

    /// What is later than what was waited for is a later write. If Postgres does not know of it, it is somebody else's, and nothing came.
    async fn note_ahead(&self, name: &str, there: &mut Vec<(&mut Key, Option<i64>, Became)>) {
        let later: Vec<String> =
            there.iter().filter(|(.., became)| *became == Became::Superseded).map(|(key, ..)| key.name.clone()).collect();
        if later.is_empty() {
            return;
        }
        let now = self.known(name, &later).await.map(|(_, keys)| keys).unwrap_or_default();
        there.retain_mut(|(key, version, became)| {
            let revision_now = now.iter().find(|now| now.name == key.name).and_then(|now| now.revision);
            let is_fine = *became != Became::Superseded || version.is_some_and(|version| is_committed(version, revision_now));
            if !is_fine {
                key.wait("the index is ahead of Postgres");
            }
            is_fine
        });
    }

    /// A key that has a dead letter and no open job was given up. The queue is read only for those that have a letter.
    async fn note_dead(&self, name: &str, waited: &mut [Key]) {
        let open: Vec<String> = waited.iter().filter(|key| key.is_waiting()).map(|key| key.name.clone()).collect();
        if open.is_empty() {
            return;
        }
        let Ok((_, known)) = self.known(name, &open).await else { return };
        let letters: Vec<String> = known.into_iter().filter(|key| key.letter.is_some()).map(|key| key.name).collect();
        if letters.is_empty() {
            return;
        }
        let asked = sqlx::query_as(include_str!("given_up.sql")).bind(name).bind(letters).fetch_all(&self.context.pool);
        let Ok(given_up): Result<Vec<(String, String)>, _> = asked.await else { return };
        for (name, reason) in given_up {
            if let Some(key) = waited.iter_mut().find(|key| key.name == name) {
                key.became = Became::Dead(reason);
            }
        }
    }
}

impl Key {
    /// Nothing is to be waited for any more.
    fn is_done(&self, until: Until) -> bool {
        match self.became {
            Became::Searchable | Became::Superseded | Became::Dead(_) => true,
            Became::Indexed => until == Until::Indexed,
            Became::Waiting(_) => false,
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(self.became, Became::Waiting(_))
    }

    fn wait(&mut self, why: &str) {
        // what was seen in the index stays true while search is asked for
        if self.became != Became::Indexed {
            self.became = Became::Waiting(why.to_owned());
        }
    }
}

fn too_late() -> Error {
    Error::refused_with("Postgres did not say within the limit which revision is waited for", "the write is not concerned; ask again later")
}

fn paused_or(collection: &Collection, why: &str) -> String {
    collection.paused.as_ref().map_or_else(|| why.to_owned(), |paused| format!("paused {paused}"))
}
