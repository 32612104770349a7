//! The ids of documents, where a view has a column `id`: another text than the key. An id is fixed for its key and unique. It is written down
//! before any document is sent under it, so that the document of a deleted row can still be found.

use std::borrow::Cow;
use std::collections::HashMap;

use sqlx::{PgPool, Row};

use super::rows::Rows;
use super::{Collection, MAX_KEY_BYTES};
use crate::Error;

/// What stands before a key that has no id: nothing was ever written for it, and nothing is but its tombstone.
const OF_A_KEY: &str = "catchword-key:";
/// What stands before the id of a document that no key has: then it is a key for this document alone.
const OF_AN_ID: &str = "catchword-id:";
/// How no id of a view may begin.
const RESERVED: &str = "catchword-";

/// The ids of some keys.
#[derive(Debug, Default)]
pub struct Ids {
    /// None: the key is the id.
    by_key: Option<HashMap<String, String>>,
    /// Keys that the view returns and whose id cannot be taken, and why.
    faults: HashMap<String, String>,
}

impl Ids {
    /// The id of a key's document.
    pub fn of<'a>(&'a self, key: &'a str) -> Cow<'a, str> {
        let Some(by_key) = &self.by_key else { return key.into() };
        match (by_key.get(key), key.strip_prefix(OF_AN_ID)) {
            (Some(id), _) => id.into(),
            (None, Some(id)) => id.into(),
            (None, None) => format!("{OF_A_KEY}{key}").into(),
        }
    }

    /// Those of several keys, in their order.
    pub fn of_all<'a>(&'a self, keys: &'a [&'a str]) -> Vec<Cow<'a, str>> {
        keys.iter().map(|key| self.of(key)).collect()
    }

    /// Why no document may be written for a key, if so.
    pub fn fault(&self, key: &str) -> Option<String> {
        let is_named = self.by_key.as_ref().is_none_or(|by_key| by_key.contains_key(key));
        (!is_named).then(|| self.faults.get(key).cloned().unwrap_or_else(|| "the view has no id for it".into()))
    }
}

impl Collection {
    /// The ids of these keys. What the view returns and has none yet is written down now, and committed: `pool` is not the connection of a
    /// batch, whose transaction may be undone.
    pub async fn ids(&self, pool: &PgPool, keys: &[&str]) -> Result<Ids, Error> {
        if !self.has_ids() {
            return Ok(Ids::default());
        }
        let mut connection = pool.acquire().await?;
        let known = sqlx::query(include_str!("known_ids.sql")).bind(&self.name).bind(keys).fetch_all(&mut *connection).await?;
        let mut by_key = HashMap::with_capacity(keys.len());
        for row in known {
            by_key.insert(row.try_get::<String, _>("key")?, row.try_get("id")?);
        }
        // a document that was nobody's may have got its row since: it is that row's business
        let strangers: Vec<&str> = keys.iter().filter_map(|key| key.strip_prefix(OF_AN_ID)).collect();
        if !strangers.is_empty() {
            let found = sqlx::query(include_str!("keys_of_ids.sql")).bind(&self.name).bind(strangers).fetch_all(&mut *connection).await?;
            for row in found {
                let key = format!("{OF_AN_ID}{}", row.try_get::<String, _>("id")?);
                let nowhere = format!("{OF_A_KEY}{key}");
                by_key.insert(key, nowhere);
            }
        }
        let new = |key: &&str| !by_key.contains_key(*key) && self.key_type.fault(key).is_none();
        let new: Vec<&str> = keys.iter().copied().filter(new).collect();
        let Rows { found, .. } = self.rows(&mut connection, |statements| statements.ids.as_deref().unwrap_or_default(), &new).await?;
        let (mut faults, mut named) = (HashMap::new(), (Vec::new(), Vec::new()));
        for row in found {
            let (key, id): (String, Option<String>) = (row.try_get("key")?, row.try_get("id")?);
            match id.ok_or_else(|| "the view's id is null".into()).and_then(checked) {
                Ok(id) => {
                    named.0.push(key);
                    named.1.push(id);
                }
                Err(why) => _ = faults.insert(key, why),
            }
        }
        if !named.0.is_empty() {
            let sql = include_str!("name_documents.sql");
            for row in sqlx::query(sql).bind(&self.name).bind(&named.0).bind(&named.1).fetch_all(&mut *connection).await? {
                let (key, id, taken_by): (String, String, Option<String>) =
                    (row.try_get("key")?, row.try_get("id")?, row.try_get("taken_by")?);
                match taken_by {
                    None => _ = by_key.insert(key, id),
                    Some(other) => _ = faults.insert(key, format!("its id {id:?} is that of the key {other:?} already")),
                }
            }
        }
        Ok(Ids { by_key: Some(by_key), faults })
    }

    /// Has its view ids of its own?
    fn has_ids(&self) -> bool {
        self.members.iter().any(|member| member.statements.ids.is_some())
    }

    /// The key of the document that has just this id. What is a key itself is no id.
    pub async fn key_of_id(&self, pool: &PgPool, id: &str) -> Result<Option<String>, Error> {
        if !self.has_ids() || id.contains('\0') {
            return Ok(None);
        }
        Ok(sqlx::query_scalar(include_str!("key_of_id.sql")).bind(&self.name).bind(id).fetch_optional(pool).await?)
    }

    /// The keys of documents with these ids, in their order. An id that no key has is a key of its own.
    pub async fn keys_of<'i>(&self, pool: &PgPool, ids: &[&'i str]) -> Result<Vec<Cow<'i, str>>, Error> {
        if !self.has_ids() {
            return Ok(ids.iter().map(|id| Cow::Borrowed(*id)).collect());
        }
        let sayable: Vec<&str> = ids.iter().copied().filter(|id| !id.contains('\0')).collect();
        let mut by_id = HashMap::with_capacity(ids.len());
        for row in sqlx::query(include_str!("keys_of_ids.sql")).bind(&self.name).bind(sayable).fetch_all(pool).await? {
            by_id.insert(row.try_get::<String, _>("id")?, row.try_get::<String, _>("key")?);
        }
        let key = |id: &&'i str| match (by_id.remove(*id), id.strip_prefix(OF_A_KEY)) {
            (Some(key), _) => Cow::Owned(key),
            (None, Some(key)) => Cow::Borrowed(key),
            (None, None) => Cow::Owned(format!("{OF_AN_ID}{id}")),
        };
        Ok(ids.iter().map(key).collect())
    }
}

fn checked(id: String) -> Result<String, String> {
    match id.len() {
        0 => Err("the view's id is empty".into()),
        bytes if bytes > MAX_KEY_BYTES => Err(format!("the view's id has {bytes} bytes, Elasticsearch takes {MAX_KEY_BYTES}")),
        _ if id.starts_with(RESERVED) => Err(format!("the view's id begins with {RESERVED}, which is catchword's own")),
        _ => Ok(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_an_id_never_has_the_id_of_another() {
        let ids = Ids { by_key: Some(HashMap::from([("7".into(), "42".into())])), faults: HashMap::new() };
        assert_eq!(ids.of("7"), "42");
        assert_eq!(ids.of("42"), "catchword-key:42");
        assert_eq!(ids.of("catchword-id:42x"), "42x");
        assert_eq!((ids.fault("7"), ids.fault("42").is_some()), (None, true));
        assert_eq!(Ids::default().of("7"), "7");
        assert_eq!(Ids::default().fault("7"), None);
    }

    #[test]
    fn an_id_must_be_one_that_elasticsearch_takes() {
        for (id, fine) in [("a", true), ("", false), (&*"x".repeat(512), true), (&*"x".repeat(513), false), ("catchword-key:7", false)] {
            assert_eq!(checked(id.to_owned()).is_ok(), fine, "{id}");
        }
    }
}
