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
use super::{Answer, Elastic, Error, Target, Vectors, answer, percent};

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
        // a server that may not be asked what it is gives what it gives
        let engine = tokio::time::timeout(limit, self.engine()).await.ok().and_then(Result::ok);
        let whole = engine.and_then(|engine| engine.whole_documents());
        // no filter_path: it would rewrite the documents
        let query: Vec<(&str, &str)> = [("realtime", "true")].into_iter().chain(whole).collect();
        let request = Request {
            method: Method::Post,
            path: &format!("/{}/_mget", percent::encode(&target.write_alias())),
            query: &query,
            content_type: "application/json",
            body: Some(Bytes::from(json!({ "ids": keys }).to_string())),
        };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        match reply.status {
            200 => read(&reply.body, keys),
            status => Err(answer::of_request(status, &reply.body)),
        }
    }

    /// Does this index keep documents as they were written, and where are the vectors in them, which it keeps only nearly so? None: it leaves
    /// parts out, or rebuilds documents from their fields, and cannot be compared by content.
    pub async fn keeps_sources(&self, target: &Target) -> Result<Option<Vectors>, Error> {
        let doing = format!("read the mapping of {target}");
        let path = format!("/{}", percent::encode(target.index()));
        let settings = "*.settings.index.mapping.source.mode,*.settings.index.derived_source.enabled,*.settings.index.uuid";
        let query = [("filter_path", &*format!("*.mappings._source,*.mappings.properties,{settings}"))];
        let body = self.ask(&doing, Method::Get, &path, &query, None).await?;
        let seen: Value = parse(&doing, &body)?;
        let index = seen.as_object().and_then(|indices| indices.values().next()).cloned().unwrap_or_default();
        let setting = |path: &str| index.pointer(path).and_then(Value::as_str);
        let is_stored = setting("/settings/index/mapping/source/mode").is_none_or(|mode| mode == "stored");
        let is_derived = setting("/settings/index/derived_source/enabled") == Some("true");
        let is_kept = is_stored && !is_derived && index.pointer("/mappings/_source").is_none();
        Ok(is_kept.then(|| Vectors::of(index.get("mappings").unwrap_or(&Value::Null))))
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
