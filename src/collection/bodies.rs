//! The documents, as the view builds them: text that is copied into the bulk, never parsed here.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde::de::IgnoredAny;
use sqlx::{PgConnection, Row};

use super::rows::{Rows, rows};
use super::{Collection, Unbuildable};
use crate::Error;
use crate::elastic::MAX_DOCUMENT_BYTES;

/// As much is fetched and sent at a time: what a bulk holds, so memory stays bounded whatever the documents.
pub const ROUND_BYTES: i64 = 4 << 20;

/// A key's document under the version of the same snapshot.
#[derive(Clone, Debug)]
pub struct Built {
    pub key: String,
    pub version: i64,
    pub document: Document,
}

/// The document itself, or why it is not here.
#[derive(Clone, Debug)]
pub enum Document {
    Body(Bytes),
    /// Above the limit; it was measured and never fetched. Its bytes.
    TooLarge(i64),
    /// Not fetched in this round. Its bytes.
    Later(i64),
}

/// The error of a document that readers would never see.
const MARKED: &str =
    "the document has a field catchword_deleted, which is catchword's own: search would never find it; give it another name";

/// Does a document have our mark of a tombstone? Few have its letters, so few are read; an escape can spell any of them.
pub(super) fn is_marked(body: &str) -> bool {
    let may_be = body.contains("catchword_deleted") || body.contains("\\u00");
    // what is no object is refused by the index
    let fields = || serde_json::from_str::<HashMap<String, IgnoredAny>>(body).unwrap_or_default();
    may_be && fields().contains_key("catchword_deleted")
}

impl Collection {
    /// One round of documents. A key that the view does not return (any more), or that there was no time for, is not in it.
    pub async fn bodies(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<(Vec<Built>, Vec<Unbuildable>), Error> {
        let (largest, mut round) = (MAX_DOCUMENT_BYTES as i64, ROUND_BYTES);
        let mut all = Rows::default();
        for (member, keys) in self.by_member(keys) {
            let rows = rows(connection, &member.statements.bodies, self, &keys, Some((largest, round))).await?;
            for row in &rows.found {
                round -= row.try_get::<Option<&str>, _>("body")?.map_or(0, |body| body.len() as i64);
            }
            all.extend(rows);
        }
        let Rows { found, mut unbuildable, unread: _ } = all;
        let mut built = Vec::with_capacity(found.len());
        let (mut seen, mut twice) = (HashSet::new(), HashSet::new());
        for row in found {
            let (key, octets): (String, Option<i64>) = (row.try_get("key")?, row.try_get("octets")?);
            if !seen.insert(key.clone()) {
                twice.insert(key.clone());
            }
            let document = match (row.try_get::<Option<String>, _>("body")?, octets) {
                (Some(body), _) if is_marked(&body) => {
                    unbuildable.push(Unbuildable { key, error: MARKED.into() });
                    continue;
                }
                (Some(body), _) => Document::Body(Bytes::from(body)),
                (None, Some(octets)) if octets > largest => Document::TooLarge(octets),
                (None, Some(octets)) => Document::Later(octets),
                (None, None) => {
                    unbuildable.push(Unbuildable { key, error: "the view's body is null".into() });
                    continue;
                }
            };
            built.push(Built { key, version: row.try_get("version")?, document });
        }
        built.retain(|b| !twice.contains(&b.key));
        unbuildable.extend(twice.into_iter().map(|key| Unbuildable { key, error: "the view returns this key more than once".into() }));
        Ok((built, unbuildable))
    }
}

#[cfg(test)]
mod tests {
    use super::is_marked;

    #[test]
    fn our_mark_is_found_however_it_is_spelled_and_only_at_the_top() {
        for marked in [r#"{"catchword_deleted":true}"#, r#"{"a":1,"catchword_deleted":null}"#, r#"{ "catchword\u005fdeleted" : false }"#] {
            assert!(is_marked(marked), "{marked}");
        }
        for plain in [r#"{"a":"catchword_deleted"}"#, r#"{"a":{"catchword_deleted":true}}"#, r#"{"a":"\u00e9"}"#, "{}"] {
            assert!(!is_marked(plain), "{plain}");
        }
    }
}
