//! The documents, as the view builds them: text that is copied into the bulk, never parsed here.

use std::collections::HashSet;

use bytes::Bytes;
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

impl Collection {
    /// One round of documents. A key that the view does not return (any more), or that there was no time for, is not in it.
    pub async fn bodies(&self, connection: &mut PgConnection, keys: &[&str]) -> Result<(Vec<Built>, Vec<Unbuildable>), Error> {
        let limits = (MAX_DOCUMENT_BYTES as i64, ROUND_BYTES);
        let Rows { found, mut unbuildable, unread: _ } = rows(connection, &self.statements.bodies, self, keys, Some(limits)).await?;
        let mut built = Vec::with_capacity(found.len());
        let (mut seen, mut twice) = (HashSet::new(), HashSet::new());
        for row in found {
            let (key, octets): (String, Option<i64>) = (row.try_get("key")?, row.try_get("octets")?);
            if !seen.insert(key.clone()) {
                twice.insert(key.clone());
            }
            let document = match (row.try_get::<Option<String>, _>("body")?, octets) {
                (Some(body), _) => Document::Body(Bytes::from(body)),
                (None, Some(octets)) if octets > limits.0 => Document::TooLarge(octets),
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
