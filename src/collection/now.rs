//! What Postgres wants of a few keys now, in one statement: for direct writes.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use sqlx::{PgConnection, Row};

use super::Collection;
use super::bodies::is_marked;
use super::statements::filled;
use crate::Error;
use crate::elastic::Target;

/// As many bytes of documents go together; a caller whose documents are beyond it goes alone.
const TOGETHER_BYTES: i64 = 1 << 20;

/// What Postgres wants of a key now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Now {
    /// The document, under the version of the same snapshot.
    Document(i64, Bytes),
    /// Gone, at this number.
    Gone(i64),
    /// Neither row nor record: there is nothing to write.
    Never,
    /// Too large to go with others, or the view has no document for its row, or several.
    Alone,
}

impl Now {
    /// The number under which it is written; none: nothing is.
    pub fn revision(&self) -> Option<i64> {
        match self {
            Now::Document(version, _) | Now::Gone(version) => Some(*version),
            Now::Never | Now::Alone => None,
        }
    }
}

impl Collection {
    /// The numbers that these keys have now. No view is read: so one that the view hides has its row's.
    pub async fn numbers(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<BTreeMap<String, i64>, Error> {
        let mut numbers = BTreeMap::new();
        for (member, keys) in self.by_member(keys) {
            for row in filled(&member.statements.numbers).bind(&self.name).bind(keys).fetch_all(&mut *connection).await? {
                if let Some(number) = row.try_get("number")? {
                    numbers.insert(row.try_get("key")?, number);
                }
            }
        }
        Ok(numbers)
    }

    /// What Postgres wants of these keys. None: this process knows other targets than there are now. An error that one row causes is
    /// everybody's here; the loop, which halves, has more time.
    pub async fn now(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<Option<HashMap<String, Now>>, Error> {
        let mut found = HashMap::with_capacity(keys.len());
        let mut rows = Vec::with_capacity(keys.len());
        for (member, keys) in self.by_member(keys) {
            let now = filled(&member.statements.now).bind(&self.name).bind(keys).bind(TOGETHER_BYTES);
            rows.extend(now.fetch_all(&mut *connection).await?);
        }
        for row in rows {
            let targets: Vec<String> = row.try_get("targets")?;
            if !targets.iter().map(String::as_str).eq(self.targets.iter().map(Target::index)) {
                return Ok(None);
            }
            let (version, gone): (Option<i64>, Option<i64>) = (row.try_get("version")?, row.try_get("gone")?);
            let now = match (version, row.try_get::<Option<&str>, _>("body")?, gone) {
                // alone it is refused, and the others go
                (Some(_), Some(body), _) if is_marked(body) => Now::Alone,
                (Some(version), Some(body), _) => Now::Document(version, Bytes::copy_from_slice(body.as_bytes())),
                (Some(_), None, _) => Now::Alone,
                (None, _, Some(gone)) => Now::Gone(gone),
                (None, _, None) => Now::Never,
            };
            let key: String = row.try_get("key")?;
            found
                .entry(key)
                .and_modify(|before| {
                    if *before != now {
                        *before = Now::Alone
                    }
                })
                .or_insert(now);
        }
        // no row at all: the collection is no longer attached
        Ok((!found.is_empty()).then_some(found))
    }
}
