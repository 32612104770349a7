//! Reindexes: counted, begun, followed, slowed down, ended. Workers schedule them, chunk by chunk.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Changed, given};
use crate::collection;
use crate::config;
use crate::reindex::{self as library, Progress, Request};
use crate::serve::{Problem, Role, Serve, Who, input_error};

/// Reindexes in one answer.
const MOST: i64 = 100;
/// Keys that one request may name.
const MOST_KEYS: usize = 1_000;
/// The highest rate that makes a difference.
const MOST_RATE: i32 = 1_000_000;

/// What is to be reindexed: one of scope, between, keys and all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewReindex {
    #[serde(default, deserialize_with = "given")]
    pub scope: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    pub between: Option<Span>,
    #[serde(default, deserialize_with = "given")]
    pub keys: Option<Vec<String>>,
    #[serde(default)]
    pub all: bool,
    /// Write even what agrees.
    #[serde(default)]
    pub rewrite: bool,
    /// Also keys that the view does not return.
    #[serde(default)]
    pub hidden: bool,
    #[serde(default, deserialize_with = "given")]
    pub tag: Option<String>,
    /// Keys a second, at most.
    #[serde(default, deserialize_with = "given")]
    pub rate: Option<i32>,
    /// Tell how many keys it would be, and schedule nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// A scope of the configuration, and its value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    pub name: String,
    pub value: String,
}

/// A period; its end is excluded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

/// What a dry run comes to.
#[derive(Clone, Debug, Serialize)]
pub struct WouldSchedule {
    pub collection: String,
    /// None: more than could be counted in the time that a statement has.
    pub would_schedule: Option<i64>,
}

/// The reindexes of a collection, or of all that exist for whoever asks: those that are not over first, the newest first.
pub async fn reindexes(serve: &Serve, who: &Who, collection: Option<&str>) -> Result<Vec<Progress>, Problem> {
    let mut connection = serve.connection().await?;
    if let (None, None) = (collection, &who.collections) {
        return Ok(library::list(&mut connection, None, MOST).await?);
    }
    let mut all = Vec::new();
    for name in serve.chosen(who, collection)? {
        all.extend(library::list(&mut connection, Some(&name), MOST).await?);
    }
    all.sort_by_key(|reindex| (reindex.state.is_over(), std::cmp::Reverse(reindex.id)));
    Ok(all)
}

/// One reindex.
pub async fn reindex(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<Progress, Problem> {
    let name = &serve.collection(who, collection)?.name;
    let found = library::show(&mut *serve.connection().await?, id).await?.filter(|found| found.collection == *name);
    found.ok_or_else(|| Problem::not_found(format!("there is no reindex {id} of this collection"), "list them: GET …/reindexes"))
}

/// How many keys it would be. Nothing is scheduled.
pub async fn reindex_count(serve: &Serve, who: &Who, collection: &str, new: &NewReindex) -> Result<WouldSchedule, Problem> {
    serve.allow(who, Role::Operator)?;
    let request = new.request(serve, who, collection).await?;
    let would_schedule = library::count(&serve.catchword.context.pool, &request).await.map_err(input_error(new.field()))?;
    Ok(WouldSchedule { collection: request.collection, would_schedule })
}

/// Writes it down; workers schedule it.
pub async fn reindex_start(serve: &Serve, who: &Who, collection: &str, new: &NewReindex) -> Result<Progress, Problem> {
    serve.allow(who, Role::Operator)?;
    let mut request = new.request(serve, who, collection).await?;
    request.expected = library::count(&serve.catchword.context.pool, &request).await.map_err(input_error(new.field()))?;
    if request.expected == Some(0) {
        return Err(Problem::conflict(
            "nothing matches, so there is nothing to reindex",
            "look at it with dry_run: true; hidden: true takes more",
        ));
    }
    let id = library::start(&serve.catchword.context.pool, &request).await.map_err(input_error(new.field()))?;
    reindex(serve, who, collection, id).await
}

/// Ends a reindex; its jobs go.
pub async fn reindex_cancel(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<Changed, Problem> {
    let name = to_act_on(serve, who, collection, id).await?;
    let changed = library::cancel(&mut *serve.connection().await?, id, &who.name).await?;
    Ok(Changed { collection: name, changed })
}

/// Stops a reindex for a while.
pub async fn reindex_pause(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<Changed, Problem> {
    let name = to_act_on(serve, who, collection, id).await?;
    let changed = library::pause(&mut *serve.connection().await?, id, &who.name).await?;
    Ok(Changed { collection: name, changed })
}

/// Goes on with a reindex.
pub async fn reindex_resume(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<Changed, Problem> {
    let name = to_act_on(serve, who, collection, id).await?;
    let changed = library::resume(&mut *serve.connection().await?, id, &who.name).await?;
    Ok(Changed { collection: name, changed })
}

/// Changes how many keys a second are scheduled; none: no limit.
pub async fn reindex_rate(serve: &Serve, who: &Who, collection: &str, id: i64, rate: Option<i32>) -> Result<Changed, Problem> {
    check_rate(rate)?;
    let name = to_act_on(serve, who, collection, id).await?;
    let changed = library::set_rate(&mut *serve.connection().await?, id, rate, &who.name).await?;
    Ok(Changed { collection: name, changed })
}

async fn to_act_on(serve: &Serve, who: &Who, collection: &str, id: i64) -> Result<String, Problem> {
    serve.allow(who, Role::Operator)?;
    Ok(reindex(serve, who, collection, id).await?.collection)
}

fn check_rate(rate: Option<i32>) -> Result<(), Problem> {
    match rate {
        Some(rate) if !(1..=MOST_RATE).contains(&rate) => {
            Err(Problem::bad("rate", format!("{rate} keys a second"), format!("write 1 to {MOST_RATE}, or null for no limit")))
        }
        _ => Ok(()),
    }
}

impl NewReindex {
    /// The part that says what is meant.
    fn field(&self) -> &'static str {
        if self.scope.is_some() {
            "scope"
        } else if self.between.is_some() {
            "between"
        } else if self.keys.is_some() {
            "keys"
        } else {
            "all"
        }
    }

    async fn request(&self, serve: &Serve, who: &Who, collection: &str) -> Result<Request, Problem> {
        let config = serve.collection(who, collection)?;
        self.check(config)?;
        // a collection that nobody would serve is refused: its jobs would only lie there
        let loaded = collection::load(&mut *serve.connection().await?, config, serve.catchword.prefix()).await?;
        if let Some(problem) = loaded.problems.first() {
            return Err(Problem::conflict(format!("collection {}: {problem}", config.name), "run: catchword migrate"));
        }
        Ok(Request {
            collection: config.name.clone(),
            scope: self.scope.clone().map(|scope| (scope.name, scope.value)),
            between: self.between.clone().map(|span| (span.from, span.to)),
            keys: self.keys.clone(),
            hidden: self.hidden,
            rewrite: self.rewrite,
            tag: self.tag.clone(),
            rate: self.rate,
            who: Some(who.name.clone()),
            ..Request::default()
        })
    }

    fn check(&self, config: &config::Collection) -> Result<(), Problem> {
        let given =
            [self.scope.is_some(), self.between.is_some(), self.keys.is_some(), self.all].into_iter().filter(|given| *given).count();
        if given != 1 {
            return Err(Problem::bad(self.field(), format!("{given} of scope, between, keys and all are given"), "give one of them"));
        }
        if let Some(scope) = &self.scope {
            let known = config.flags();
            if !known.contains(&scope.name.as_str()) {
                let remedy = match known.is_empty() {
                    true => "name a column in the configuration: scopes = { author = \"author\" }".to_owned(),
                    false => format!("write one of {}", known.join(", ")),
                };
                return Err(Problem::bad("scope.name", format!("collection {} has no such scope", config.name), remedy));
            }
            if scope.value.contains('\0') {
                return Err(Problem::bad("scope.value", "it holds the character 0, which no text in Postgres has", "leave it out"));
            }
        }
        if let Some(span) = &self.between {
            if config.period.is_none() {
                let remedy = "name the column in the configuration: period = \"updated\"";
                return Err(Problem::bad("between", format!("collection {} has no period", config.name), remedy));
            }
            if span.from >= span.to {
                return Err(Problem::bad("between", "the period ends before it begins", "exchange from and to"));
            }
        }
        match &self.keys {
            Some(keys) if keys.is_empty() || keys.len() > MOST_KEYS => {
                Err(Problem::bad("keys", format!("there are {} keys", keys.len()), format!("send 1 to {MOST_KEYS} in one request")))
            }
            Some(keys) if keys.iter().any(|key| key.is_empty() || key.contains('\0')) => {
                Err(Problem::bad("keys", "a key is empty or holds the character 0", "leave it out"))
            }
            _ => check_rate(self.rate),
        }
    }
}
