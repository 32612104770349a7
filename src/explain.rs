//! What both sides know of one key, in words for a tired person at night.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::collection::{self, Document, Want};
use crate::elastic::Has;
use crate::job::{self, Dead, Open};
use crate::sync::{Verdict, compare};
use crate::{Catchword, Error, config};

const LOOK: Duration = Duration::from_secs(10);

/// Everything about a key.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub collection: String,
    pub key: String,
    /// `present`, `hidden`, `deleted` or `never`.
    pub postgres: &'static str,
    /// The row's revision, or the recorded number of its delete.
    pub revision: Option<i64>,
    /// The document as the view builds it now.
    pub document: Option<serde_json::Value>,
    /// Why the view cannot build it.
    pub unbuildable: Option<String>,
    pub indices: Vec<InIndex>,
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
}

impl Catchword {
    /// Looks at both sides of a key. Elasticsearch first, as the loop does.
    pub async fn explain(&self, config: &config::Collection, key: &str) -> Result<Explanation, Error> {
        let mut connection = self.inner.pool.acquire().await?;
        let collection = collection::load(&mut connection, config, &self.inner.prefix).await?;
        if let Some(fault) = collection.key_type.fault(key) {
            return Err(Error::Refused(format!("{key:?} cannot be a key of {}: {fault}", collection.name)));
        }
        let mut seen = Vec::new();
        for target in &collection.targets {
            let has = match self.inner.elastic.look(target, &[key], LOOK).await {
                Ok(mut all) if all.len() == 1 => all.remove(0),
                Ok(_) => Has::Unknown("no answer".into()),
                Err(answer) => Has::Unknown(answer.to_string()),
            };
            seen.push((target.index().to_owned(), has));
        }
        let (wants, faults) = collection.wants(&mut connection, &[key]).await?;
        let want = wants.get(key).copied();
        let (built, more_faults) = collection.bodies(&mut connection, &[key]).await?;
        let unbuildable = faults.into_iter().chain(more_faults).next().map(|fault| fault.error);
        let document = built.into_iter().next().and_then(|built| match built.document {
            Document::Body(bytes) => serde_json::from_slice(&bytes).ok(),
            Document::TooLarge(octets) | Document::Later(octets) => Some(format!("{octets} bytes").into()),
        });
        let (postgres, revision) = match want {
            Some(Want::Present(v)) => ("present", Some(v)),
            Some(Want::Hidden(n)) => ("hidden", Some(n - 1)),
            Some(Want::Deleted(n)) => ("deleted", Some(n)),
            Some(Want::Never) => ("never", None),
            None => ("unbuildable", None),
        };
        Ok(Explanation {
            postgres,
            revision,
            document,
            unbuildable,
            indices: seen.into_iter().map(|(index, has)| in_index(index, &has, want)).collect(),
            jobs: job::open_of_key(&mut connection, &collection.name, key).await?,
            dead: job::dead_of_key(&mut connection, &collection.name, key).await?,
            collection: collection.name,
            key: key.to_owned(),
        })
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
    }
}

impl Explanation {
    /// Do all indices agree with Postgres?
    pub fn is_in_step(&self) -> bool {
        let agree = |index: &InIndex| index.verdict == Some(Verdict::Current.name()) || index.verdict == Some(Verdict::Gone.name());
        !self.indices.is_empty() && self.indices.iter().all(agree)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.collection, self.key)?;
        let revision = self.revision.map_or(String::new(), |n| n.to_string());
        writeln!(
            f,
            "  postgres       {}",
            match self.postgres {
                "present" => format!("has it, at revision {revision}"),
                "hidden" => format!("has the row, at revision {revision}, but the view does not return it: it must not be found"),
                "deleted" => format!("deleted it, recorded as {revision}"),
                "unbuildable" => "has it, and the view fails for it".into(),
                _ => "never had it: no row, and no record of a delete".into(),
            }
        )?;
        if let Some(error) = &self.unbuildable {
            writeln!(f, "  the view says  {error}")?;
        }
        for index in &self.indices {
            let has = match (&index.unknown, index.version) {
                (Some(why), _) => format!("could not say: {why}"),
                (None, None) => "has nothing".into(),
                (None, Some(version)) if index.tombstone => {
                    format!("has a tombstone, at version {version}: deleted, and search does not find it")
                }
                (None, Some(version)) => format!("has a document, at version {version}"),
            };
            writeln!(f, "  elasticsearch  {} {has}", index.index)?;
            writeln!(
                f,
                "  verdict        {}",
                index.verdict.map_or("none: the row must be mended first", meaning)
            )?;
        }
        for job in &self.jobs {
            let due = if job.due {
                "due now".into()
            } else {
                format!("due {}", job.scheduled_at.format("%Y-%m-%d %H:%M:%S UTC"))
            };
            write!(f, "  job            {} {due}, asked for by {}", job.id, job.tag)?;
            match (&job.last_error, job.attempts) {
                (Some(error), n) if n > 0 => writeln!(f, ", refused {n} times, last: {error}")?,
                _ => writeln!(f)?,
            }
        }
        for dead in &self.dead {
            let error = dead.last_error.as_deref().unwrap_or("no error was kept");
            writeln!(
                f,
                "  dead letter    {} given up {} ({}) after {} tries: {error}",
                dead.id,
                dead.died_at.format("%Y-%m-%d %H:%M:%S UTC"),
                dead.reason,
                dead.attempts
            )?;
        }
        if let Some(document) = &self.document {
            writeln!(f, "  document       {document}")?;
        }
        match (self.is_in_step(), self.jobs.is_empty()) {
            (true, true) => writeln!(f, "  in step, nothing to do"),
            (true, false) => writeln!(f, "  in step; the next pass settles the job"),
            (false, false) => writeln!(f, "  not in step yet; the job stays until it is"),
            (false, true) => writeln!(
                f,
                "  not in step, and no job is open: catchword reindex {} --ids {} --hidden",
                self.collection, self.key
            ),
        }
    }
}

fn meaning(verdict: &str) -> &'static str {
    match verdict {
        "current" => "current: both sides agree",
        "gone" => "gone: both sides agree that there is nothing",
        "missing" => "missing: saved, and not searchable yet",
        "stale" => "stale: search finds an older one",
        "orphan" => "orphan: search finds what Postgres does not want",
        "untold" => "untold: deleted, and Elasticsearch has not been told; nothing is found, but a late write could come to stay",
        "ahead" => "ahead: Elasticsearch has what was never committed here; a restore lost commits, or somebody wrote to the index",
        _ => "unknown: Elasticsearch could not say",
    }
}
