//! What both sides know of one key, in words for a tired person at night.

use std::fmt;

use serde::Serialize;

use crate::audit::{self, Cause, Facts, Fields};
use crate::collection::{self, Built, Collection, Document, Want};
use crate::compare::{Verdict, compare};
use crate::context::Context;
use crate::elastic::{Has, Target};
use crate::job::{self, Dead, Open};
use crate::look::{self, AtElasticsearch, SeenKey};
use crate::printable::{printable, shell_word};
use crate::{Error, config};

/// Everything about a key.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub collection: String,
    pub key: String,
    /// The id of its document, where that is not the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Why the id that the view returns for its row is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_refused: Option<String>,
    /// Why nothing of the collection is worked on for now.
    pub paused: Option<String>,
    /// Why nothing is known of its row, where a collection has many schemas and this one is not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// `present`, `hidden`, `deleted`, `never`, `unbuildable` if the view fails before it can say, or `unknown` if its schema is not served.
    pub postgres: &'static str,
    /// The row's revision, or the recorded number of its delete.
    pub revision: Option<i64>,
    /// The document as the view builds it now.
    pub document: Option<serde_json::Value>,
    /// Why the view cannot build it.
    pub unbuildable: Option<String>,
    pub indices: Vec<InIndex>,
    /// Will a touch that is still open come to it? A related row changed, and its document will be written again.
    pub touch_is_open: bool,
    /// Why its document may differ under equal numbers, the likeliest first; empty: it does not, or a touch is open.
    pub likely_causes: Vec<Cause>,
    pub jobs: Vec<Open>,
    pub dead: Vec<Dead>,
}

/// What one index has of the key.
#[derive(Debug, Serialize)]
pub struct InIndex {
    pub index: String,
    pub version: Option<i64>,
    pub tombstone: bool,
    /// Why it could not be asked.
    pub unknown: Option<String>,
    pub verdict: Option<&'static str>,
    /// Is its document the one that the view builds? None: the versions differ, or it could not be compared.
    pub same_document: Option<bool>,
    /// If not: the fields that differ.
    pub fields: Fields,
}

/// Looks at both sides of a key. Elasticsearch first, as the loop does.
pub(crate) async fn explain(context: &Context, config: &config::Collection, key: &str) -> Result<Explanation, Error> {
    let collection = collection::load(&mut *context.pool.acquire().await?, config, &context.prefix).await?;
    explain_in(context, &collection, key).await
}

/// The same in a collection that was read just now.
pub(crate) async fn explain_in(context: &Context, collection: &Collection, key: &str) -> Result<Explanation, Error> {
    let mut connection = context.pool.acquire().await?;
    let key = collection.key_of_id(&context.pool, key).await?.map_or_else(|| canonical(collection, key), Ok)?;
    let key = key.as_str();
    let mut look = AtElasticsearch::of(collection, &context.pool, &[key]).await?;
    let ids = collection.ids(&context.pool, &[key]).await?;
    for target in &collection.targets {
        _ = look.ask(&context.elastic, target, look::LIMIT).await;
    }
    let schema = collection.schema_not_served(key);
    let seen = look.then_postgres(collection, &mut connection).await?;
    let SeenKey { want, has } = seen.key(0);
    let (built, more_faults) = collection.bodies(&mut connection, &[key]).await?;
    let unbuildable = seen.unbuildable.into_iter().chain(more_faults).next().map(|fault| fault.error);
    let built = built.into_iter().next();
    let indices = collection.targets.iter().zip(&has).map(|(target, has)| in_index(target.index().to_owned(), has, want));
    let mut indices: Vec<InIndex> = indices.collect();
    for (target, index) in collection.targets.iter().zip(&mut indices) {
        if let Some(Built { version, document: Document::Body(body), .. }) = &built {
            let differing = differing(context, target, &ids.of(key), *version, body).await;
            index.same_document = differing.as_ref().map(Option::is_none);
            index.fields = differing.flatten().unwrap_or_default();
        }
    }
    let differs = indices.iter().any(|index| index.same_document == Some(false));
    let touch_is_open = differs && job::touch_is_open(&mut connection, &collection.name, key).await?;
    let likely_causes = match differs && !touch_is_open {
        true => Facts::read(collection, &mut connection).await?.causes(),
        false => Vec::new(),
    };
    let document = built.and_then(|built| match built.document {
        Document::Body(bytes) => serde_json::from_slice(&bytes).ok(),
        Document::TooLarge(octets) | Document::Later(octets) => Some(format!("{octets} bytes").into()),
    });
    let (postgres, revision) = match want {
        Some(Want::Present(v)) => ("present", Some(v)),
        Some(Want::Hidden(n)) => ("hidden", Some(n - 1)),
        Some(Want::Deleted(n)) => ("deleted", Some(n)),
        Some(Want::Never) => ("never", None),
        None if schema.is_some() => ("unknown", None),
        None => ("unbuildable", None),
    };
    // of a schema that was there once the index or a record may still tell
    let absent = postgres == "never" && has.iter().all(|has| matches!(has, Has::Absent));
    let schema = schema.filter(|_| postgres == "unknown" || absent);
    let postgres = if schema.is_some() { "unknown" } else { postgres };
    indices.iter_mut().filter(|_| schema.is_some()).for_each(|index| index.verdict = None);
    // without a row there is no id to be refused
    let id_refused = ids.fault(key).filter(|_| matches!(want, Some(Want::Present(_))));
    Ok(Explanation {
        schema,
        postgres,
        revision,
        document,
        unbuildable,
        indices,
        touch_is_open,
        likely_causes,
        jobs: job::open_of_key(&mut connection, &collection.name, key).await?,
        dead: job::dead_of_key(&mut connection, &collection.name, key).await?,
        paused: collection.paused.clone(),
        collection: collection.name.clone(),
        id: (id_refused.is_none() && ids.of(key) != key).then(|| ids.of(key).into_owned()),
        id_refused,
        key: key.to_owned(),
    })
}

/// Numbers say that nothing differs; the documents themselves may: in these fields. None: the versions differ, or it could not be asked.
async fn differing(context: &Context, target: &Target, id: &str, version: i64, body: &[u8]) -> Option<Option<Fields>> {
    let elastic = &context.elastic;
    let vectors = elastic.keeps_sources(target).await.ok()??;
    let stored = elastic.sources(target, &[id], look::LIMIT).await.ok()?.pop()??;
    let source = vectors.rounded(&stored.source, body);
    let differs = || (!audit::is_same(&source, body)).then(|| audit::differing_fields(body, &source));
    (stored.version == version).then(differs)
}

/// What was typed, as Postgres writes it: an upper-case uuid or ` 7` is understood.
fn canonical(collection: &collection::Collection, typed: &str) -> Result<String, Error> {
    let key_type = &collection.key_type;
    let what = |why: &str| format!("{typed:?} cannot be a key of {}: {why}", collection.name);
    let key = key_type.canonical(typed).ok_or_else(|| {
        Error::refused_with(
            what(&format!("its keys are of type {}", key_type.name())),
            format!("write for instance {}", key_type.example()),
        )
    })?;
    match key_type.fault(&key) {
        None => Ok(key),
        Some(fault) => Err(Error::refused(what(&fault))),
    }
}

fn in_index(index: String, has: &Has, want: Option<Want>) -> InIndex {
    let verdict = want.map(|want| compare(want, has).name());
    let (version, unknown) = match has {
        Has::Present(version) => (Some(*version), None),
        Has::Absent => (None, None),
        Has::Unknown(why) => (None, Some(why.clone())),
    };
    InIndex {
        index,
        version,
        tombstone: version.is_some_and(|v| v % 2 != 0),
        unknown,
        verdict,
        same_document: None,
        fields: Fields::default(),
    }
}

impl Explanation {
    /// Takes off what is in the document, and leaves which of its fields differ.
    pub fn hide_contents(&mut self) {
        self.document = None;
        self.indices.iter_mut().for_each(|index| index.fields.hide_values());
    }

    /// Do all indices agree with Postgres?
    pub fn is_in_step(&self) -> bool {
        let agree = |index: &InIndex| {
            let by_number = index.verdict == Some(Verdict::Current.name()) || index.verdict == Some(Verdict::Gone.name());
            by_number && index.same_document != Some(false)
        };
        self.schema.is_none() && !self.indices.is_empty() && self.indices.iter().all(agree)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.collection, printable(&self.key))?;
        if let Some(id) = &self.id {
            writeln!(f, "  document id    {}", printable(id))?;
        }
        if let Some(why) = &self.id_refused {
            writeln!(f, "  document id    refused: {}", printable(why))?;
        }
        if let Some(why) = &self.schema {
            writeln!(f, "  schema         {}", printable(why))?;
        }
        let revision = self.revision.map_or(String::new(), |n| n.to_string());
        writeln!(
            f,
            "  postgres       {}",
            match self.postgres {
                "present" => format!("has it, at revision {revision}"),
                "hidden" => format!("has the row, at revision {revision}, but the view does not return it: it must not be found"),
                "deleted" => format!("deleted it, recorded as {revision}"),
                "unbuildable" => "has it, and the view fails for it".into(),
                "unknown" => "not asked, because its schema is not served".into(),
                _ => "never had it: no row, and no record of a delete".into(),
            }
        )?;
        if let Some(error) = &self.unbuildable {
            writeln!(f, "  the view says  {}", printable(error))?;
        }
        for index in &self.indices {
            let has = match (&index.unknown, index.version) {
                (Some(why), _) => format!("could not say: {}", printable(why)),
                (None, None) => "has nothing".into(),
                (None, Some(version)) if index.tombstone => {
                    format!("has a tombstone, at version {version}: deleted, and search does not find it")
                }
                (None, Some(version)) => format!("has a document, at version {version}"),
            };
            writeln!(f, "  elasticsearch  {} {has}", index.index)?;
            if index.same_document == Some(false) {
                writeln!(f, "  verdict        content: the numbers agree, and the document is another than the view builds")?;
                for line in index.fields.lines() {
                    writeln!(f, "  differs        {line}")?;
                }
                continue;
            }
            let none = match self.schema {
                Some(_) => "none: its schema is not served",
                None => "none: the row must be fixed first",
            };
            writeln!(f, "  verdict        {}", index.verdict.map_or(none, meaning))?;
        }
        for job in &self.jobs {
            let due = if job.due { "due now".into() } else { format!("due {}", job.scheduled_at.format("%Y-%m-%d %H:%M:%S UTC")) };
            write!(f, "  job            {} {due}, asked for by {}", job.id, printable(&job.tag))?;
            match (&job.last_error, job.attempts) {
                (Some(error), n) if n > 0 => writeln!(f, ", refused {}, last: {}", times(n), printable(error))?,
                _ => writeln!(f)?,
            }
        }
        for dead in &self.dead {
            let error = dead.last_error.as_deref().unwrap_or("no error was recorded");
            writeln!(
                f,
                "  dead letter    {} given up {} ({}), refused {}: {}",
                dead.id,
                dead.died_at.format("%Y-%m-%d %H:%M:%S UTC"),
                dead.reason,
                times(dead.attempts),
                printable(error)
            )?;
        }
        if let Some(document) = &self.document {
            writeln!(f, "  document       {}", printable(&document.to_string()))?;
        }
        if self.touch_is_open {
            writeln!(f, "  touch          open: a related row changed, and its document will be written again")?;
        }
        for (n, cause) in self.likely_causes.iter().enumerate() {
            let word = if n == 0 { "likely cause" } else { "or" };
            writeln!(f, "  {word:<14} {}; {}", printable(&cause.what), cause.remedy)?;
        }
        if let Some(why) = &self.paused {
            writeln!(f, "  paused         {}; nothing is done meanwhile", printable(why))?;
        }
        writeln!(f, "  {}", self.in_a_sentence())
    }
}

impl Explanation {
    /// What it comes to, and what to do.
    pub(crate) fn in_a_sentence(&self) -> String {
        let by_hand = || format!("catchword reindex {} --ids {} --hidden", self.collection, shell_word(&self.key));
        let unknown = self.indices.iter().any(|index| index.unknown.is_some());
        match (self.is_in_step(), self.jobs.is_empty()) {
            (_, true) if self.schema.is_some() => "not known whether it is in step: its schema is not served".into(),
            (_, false) if self.schema.is_some() => {
                "not known whether it is in step: its schema is not served; the job stays until it is".into()
            }
            (true, true) => "in step, nothing to do".into(),
            (true, false) => "in step; the next pass settles the job".into(),
            (false, false) if unknown => "not known whether it is in step; the job stays until it is".into(),
            (false, true) if unknown => "not known whether it is in step; ask again when Elasticsearch answers".into(),
            _ if self.touch_is_open => "not in step yet; a touch is open and will come to it, watch it: catchword status".into(),
            // a job does not help: it looks at the numbers, which agree
            _ if self.indices.iter().any(|index| index.same_document == Some(false)) => format!(
                "not in step, though the numbers agree; write it again: catchword reindex {} --ids {} --rewrite",
                self.collection,
                shell_word(&self.key)
            ),
            _ if self.id_refused.is_some() => {
                format!("not in step, because its id is refused: fix the row or the view, then: {}", by_hand())
            }
            (false, false) => "not in step yet; the job stays until it is".into(),
            (false, true) if self.dead.is_empty() => format!("not in step, and no job is open: {}", by_hand()),
            (false, true) => format!("not in step, and given up: fix what the dead letter says, then: {}", by_hand()),
        }
    }
}

fn times(n: i32) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

/// What a verdict means: the word, and a sentence behind it.
pub(crate) fn meaning(verdict: &str) -> &'static str {
    match verdict {
        "current" => "current: both sides agree",
        "gone" => "gone: both sides agree that there is nothing",
        "missing" => "missing: saved, and not searchable yet",
        "stale" => "stale: search finds an older one",
        "orphan" => "orphan: search finds what Postgres does not want",
        "untold" => {
            "untold: deleted, and Elasticsearch has not been told; search is right today, but a delayed old write could bring the document back for good"
        }
        "ahead" => "ahead: Elasticsearch has what was never committed here; a restore lost commits, or somebody wrote to the index",
        _ => "unknown: Elasticsearch could not say",
    }
}
