//! The documents themselves, as an index keeps them.

use std::borrow::Cow;
use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ask::parse;
use super::client::Request;
use super::{Answer, Elastic, Error, Target, answer, percent};

/// A document as an index keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub version: i64,
    /// The JSON that was written.
    pub source: Bytes,
}

impl Stored {
    /// Is it a document that readers see, whatever its number says?
    pub fn is_shown(&self) -> bool {
        #[derive(Default, Deserialize)]
        struct Mark {
            #[serde(default)]
            catchword_deleted: Value,
        }
        let mark: Mark = serde_json::from_slice(&self.source).unwrap_or_default();
        mark.catchword_deleted != Value::Bool(true)
    }
}

impl Elastic {
    /// The documents of these keys in real time, in their order; none where there is none. The caller bounds their bytes.
    pub async fn sources(&self, target: &Target, keys: &[&str], limit: Duration) -> Result<Vec<Option<Stored>>, Answer> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let request = Request {
            method: Method::Post,
            path: &format!("/{}/_mget", percent::encode(&target.write_alias())),
            // no filter_path: it would rewrite the documents
            query: &[("realtime", "true")],
            content_type: "application/json",
            body: Some(Bytes::from(json!({ "ids": keys }).to_string())),
        };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        match reply.status {
            200 => read(&reply.body, keys),
            status => Err(answer::of_request(status, &reply.body)),
        }
    }

    /// Does this index keep documents as they were written? One that leaves parts out, or rebuilds them from their fields, cannot be
    /// compared by content.
    pub async fn keeps_sources(&self, target: &Target) -> Result<bool, Error> {
        let doing = format!("read the mapping of {target}");
        let path = format!("/{}", percent::encode(target.index()));
        let query = [("filter_path", "*.mappings._source,*.settings.index.mapping.source.mode,*.settings.index.uuid")];
        let body = self.ask(&doing, Method::Get, &path, &query, None).await?;
        let seen: Value = parse(&doing, &body)?;
        let index = seen.as_object().and_then(|indices| indices.values().next()).cloned().unwrap_or_default();
        let mode = index.pointer("/settings/index/mapping/source/mode").and_then(Value::as_str).unwrap_or("stored");
        Ok(mode == "stored" && index.pointer("/mappings/_source").is_none())
    }
}

fn read(body: &[u8], keys: &[&str]) -> Result<Vec<Option<Stored>>, Answer> {
    #[derive(Deserialize)]
    struct Docs<'a> {
        #[serde(borrow)]
        docs: Vec<Doc<'a>>,
    }
    #[derive(Deserialize)]
    struct Doc<'a> {
        #[serde(rename = "_id", borrow)]
        id: Cow<'a, str>,
        #[serde(rename = "_version")]
        version: Option<i64>,
        #[serde(rename = "_source", borrow)]
        source: Option<&'a RawValue>,
        found: Option<bool>,
    }
    let unknown = |text: &str| Answer::Unknown(text.to_owned());
    let Docs { docs } = serde_json::from_slice(body).map_err(|_| unknown("the answer to a look cannot be read"))?;
    if docs.len() != keys.len() || docs.iter().zip(keys).any(|(doc, key)| doc.id != *key) {
        return Err(unknown("the answer to a look is about other keys"));
    }
    let stored = docs.into_iter().map(|doc| match (doc.found, doc.version, doc.source) {
        (Some(true), Some(version), Some(source)) => Ok(Some(Stored { version, source: Bytes::copy_from_slice(source.get().as_bytes()) })),
        (Some(false), ..) => Ok(None),
        _ => Err(unknown("the index could not say what it has")),
    });
    stored.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_comes_as_it_was_written() {
        // by 9.4.3
        let body = br#"{"docs":[{"_index":"i","_id":"a","_version":4,"_seq_no":0,"_primary_term":1,"found":true,"_source":{"n": 1.00}},{"_index":"i","_id":"b","found":false}]}"#;
        let stored = read(body, &["a", "b"]).unwrap();
        assert_eq!(stored, [Some(Stored { version: 4, source: Bytes::from_static(br#"{"n": 1.00}"#) }), None]);
        assert!(read(body, &["a", "c"]).is_err());
        assert!(read(br#"{"docs":[{"_id":"a","error":{"type":"x"}}]}"#, &["a"]).is_err());
    }

    #[test]
    fn a_tombstone_is_told_by_its_mark() {
        let shown = |source: &'static str| Stored { version: 5, source: Bytes::from_static(source.as_bytes()) }.is_shown();
        assert!(!shown(r#"{"catchword_deleted":true}"#));
        assert!(shown(r#"{"catchword_deleted":false}"#) && shown(r#"{"n":1}"#));
    }
}
