//! API keys: who may ask `catchword serve` for what. A key is `cwk_ID_SECRET`: the id names it and is no secret; the secret is 32 random
//! bytes. Postgres has the SHA-256 of the whole text, and nobody has the text but whoever was shown it.

mod text;

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::{FromRow, PgConnection, PgPool};

pub(crate) use text::{PREFIX, id_of, is_digest_of};

use crate::{Error, database};
use text::{digest, new_text};

/// Requests a second, where nothing else was said.
pub const RATE: i32 = 100;

/// What somebody may do. Each may also do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks, and changes nothing.
    Reader,
    /// Schedules keys.
    Writer,
    /// Does what an operator does: pause, resume, replay, discard, reindex, audit.
    Operator,
    /// Also rebuilds.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Role; 4] = [Role::Reader, Role::Writer, Role::Operator, Role::Admin];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Writer => "writer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    /// The role of that word.
    pub fn named(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == word)
    }
}

/// A key that is to be made.
#[derive(Clone, Debug)]
pub struct Request {
    pub name: String,
    pub role: Role,
    /// The only collections it may see; none: all.
    pub collections: Option<Vec<String>>,
    /// Requests a second.
    pub rate: i32,
    /// None: it does not expire.
    pub expires: Option<Duration>,
}

/// Makes a key, and returns its text: this is the only time that anybody sees it. None: a key of that name is there.
pub async fn create(connection: &mut PgConnection, request: &Request, who: &str) -> Result<Option<String>, Error> {
    let (id, text) = new_text()?;
    let kept: bool = sqlx::query_scalar(include_str!("create.sql"))
        .bind(&id)
        .bind(&request.name)
        .bind(digest(&text).as_slice())
        .bind(request.role.name())
        .bind(&request.collections)
        .bind(request.rate)
        .bind(request.expires.map(|span| span.as_secs_f64()))
        .bind(who)
        .fetch_one(connection)
        .await?;
    Ok(kept.then_some(text))
}

/// Refuses a key from now on. False: there is none of that name.
pub async fn revoke(connection: &mut PgConnection, name: &str, who: &str) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.revoke_key($1, $2)").bind(name).bind(who).fetch_one(connection).await?)
}

/// A key, for people and scripts. There is nothing secret in it.
#[derive(Clone, Debug, FromRow, Serialize)]
pub struct Listed {
    pub id: String,
    pub name: String,
    pub role: String,
    pub collections: Option<Vec<String>>,
    pub rate: i32,
    /// `live`, `expired` or `revoked`.
    pub state: String,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    pub expires_at: Option<DateTime<Utc>>,
    pub last_used_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    pub revoked_by: Option<String>,
}

/// All keys: those that can be used by their names, then the revoked ones.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<Listed>, Error> {
    Ok(sqlx::query_as(include_str!("list.sql")).fetch_all(connection).await?)
}

/// A key as it is kept.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct Kept {
    pub id: String,
    pub name: String,
    pub digest: Vec<u8>,
    pub role: String,
    pub collections: Option<Vec<String>>,
    pub rate: i32,
    pub state: String,
}

/// The key with this id, whatever its state.
pub(crate) async fn find(kept: &database::Kept, pool: &PgPool, id: &str) -> Result<Option<Kept>, Error> {
    let rows = kept.ask(pool, || sqlx::query(include_str!("find.sql")).bind(id.to_owned())).await?;
    Ok(rows.first().map(Kept::from_row).transpose()?)
}

/// Is there a key that can be used?
pub(crate) async fn is_there_one(connection: &mut PgConnection) -> Result<bool, Error> {
    Ok(sqlx::query_scalar("select catchword.has_keys()").fetch_one(connection).await?)
}

/// Remembers that it was used just now.
pub(crate) async fn note_used(connection: &mut PgConnection, id: &str) -> Result<(), Error> {
    sqlx::query("select catchword.note_key_used($1)").bind(id).execute(connection).await?;
    Ok(())
}
