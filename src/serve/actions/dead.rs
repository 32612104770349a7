//! Dead letters: seen, scheduled again, deleted.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::given;
use crate::job::{self, Group, Letter, Which};
use crate::serve::{Problem, Role, Serve, Who};

/// Dead letters, or groups of them, in one answer.
pub const MOST_LETTERS: i64 = 1_000;

/// Why a job was given up, as `catchword.dead_job` has it.
pub const REASONS: [&str; 8] = ["refused", "unbuildable", "too_large", "bad_key", "expired", "ahead", "unanswered", "by_hand"];

/// Which dead letters of a collection. Everything that is given must fit; `all` says that nothing else is meant to be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    #[serde(default, deserialize_with = "given")]
    pub ids: Option<Vec<i64>>,
    #[serde(default, deserialize_with = "given")]
    pub reason: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub tag: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub since: Option<DateTime<Utc>>,
    /// The very text of the error, as groups have it; empty: those without one.
    #[serde(default, deserialize_with = "given")]
    pub error: Option<String>,
    #[serde(default)]
    pub all: bool,
}

/// How many dead letters it was.
#[derive(Clone, Debug, Serialize)]
pub struct Count {
    pub count: i64,
}

/// The dead letters of a collection, or of all that exist for whoever asks, by error: the most frequent first.
pub async fn dead_groups(serve: &Serve, who: &Who, collection: Option<&str>, chosen: &Chosen) -> Result<Vec<Group>, Problem> {
    let mut all = Vec::new();
    for name in serve.chosen(who, collection)? {
        let which = chosen.of(name);
        all.extend(job::dead_groups(&mut *serve.connection().await?, &which, MOST_LETTERS).await?);
    }
    all.sort_by_key(|group| std::cmp::Reverse(group.count));
    Ok(all)
}

/// The newest dead letters of a collection, one by one.
pub async fn dead_letters(serve: &Serve, who: &Who, collection: &str, chosen: &Chosen, limit: i64) -> Result<Vec<Letter>, Problem> {
    let which = chosen.of(serve.collection(who, collection)?.name.clone());
    Ok(job::dead_letters(&mut *serve.connection().await?, &which, limit.clamp(1, MOST_LETTERS)).await?)
}

/// Schedules dead letters again.
pub async fn replay(serve: &Serve, who: &Who, collection: &str, chosen: &Chosen) -> Result<Count, Problem> {
    serve.allow(who, Role::Operator)?;
    let which = chosen.to_act_on(serve, who, collection)?;
    let count = job::replay(&mut *serve.connection().await?, &which, &who.name, &chosen.words()).await?;
    Ok(Count { count })
}

/// Deletes dead letters.
pub async fn discard(serve: &Serve, who: &Who, collection: &str, chosen: &Chosen) -> Result<Count, Problem> {
    serve.allow(who, Role::Operator)?;
    let which = chosen.to_act_on(serve, who, collection)?;
    let count = job::discard(&mut *serve.connection().await?, &which, &who.name, &chosen.words()).await?;
    Ok(Count { count })
}

impl Chosen {
    fn of(&self, collection: String) -> Which {
        let Chosen { ids, reason, tag, since, error, all: _ } = self.clone();
        Which { ids, collection: Some(collection), reason, tag, since, error }
    }

    /// Something must be named: an empty request does not mean everything.
    fn to_act_on(&self, serve: &Serve, who: &Who, collection: &str) -> Result<Which, Problem> {
        let which = self.of(serve.collection(who, collection)?.name.clone());
        let named = which.ids.is_some() || which.reason.is_some() || which.tag.is_some() || which.since.is_some() || which.error.is_some();
        match (named, self.all) {
            (true, true) => Err(Problem::bad("all", "all are meant, and then some of them", "leave one of the two out")),
            (false, false) => {
                Err(Problem::bad("all", "nothing says which dead letters are meant", "give ids, reason, tag, since or error, or all: true"))
            }
            _ => Ok(which),
        }
    }

    /// What was asked for, for the journal.
    fn words(&self) -> String {
        let ids = self.ids.iter().flatten().take(20).map(|id| Some(id.to_string()));
        let since = self.since.map(|since| since.to_rfc3339());
        let given = [("--reason", &self.reason), ("--tag", &self.tag), ("--since", &since), ("error:", &self.error)];
        let given =
            given.into_iter().map(|(flag, value)| Some(format!("{flag} {}", value.as_ref()?.chars().take(100).collect::<String>())));
        let words: Vec<String> = ids.chain(given).flatten().collect();
        if words.is_empty() { "--all".into() } else { words.join(" ") }
    }
}
