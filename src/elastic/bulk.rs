//! Writing documents under their versions.

use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use tokio::time::Instant;

use super::chunks::Chunks;
use super::client::Request;
use super::{Answer, Elastic, Target, percent};

/// The largest document that is sent, in bytes. Above it a document takes a bulk of its own and the memory of everybody.
pub const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// One write: whatever is there under this key gives way to it, unless it has this version or a higher one.
#[derive(Debug, Clone)]
pub struct Write<'a> {
    /// The document's `_id`.
    pub key: &'a str,
    /// Its version: the revision, or the number of the delete.
    pub version: i64,
    /// What is written.
    pub body: Body,
}

impl Write<'_> {
    /// The same write under another id.
    pub fn under<'b>(&self, id: &'b str) -> Write<'b> {
        Write { key: id, version: self.version, body: self.body.clone() }
    }
}

/// What is written.
#[derive(Debug, Clone)]
pub enum Body {
    /// A document: one JSON object, as the view returned it.
    Document(Bytes),
    /// The document that says a key is gone. A real delete is forgotten after a minute, and an old write that comes later
    /// would bring the document back.
    Tombstone,
}

/// Whether a write can be searched at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// When the index refreshes on its own.
    No,
    /// Before the answer comes. It costs every other writer of the index: for single writes that somebody waits for.
    Now,
}

impl Elastic {
    /// Writes, and says for each write what became of it, in their order.
    ///
    /// It goes out in chunks, one after the other: so a batch has at most one chunk's bytes in flight. What was not sent in
    /// time is unknown.
    pub async fn bulk(&self, target: &Target, writes: &[Write<'_>], refresh: Refresh, limit: Duration) -> Vec<Answer> {
        let deadline = Instant::now() + limit;
        let path = format!("/{}/_bulk", percent::encode(&target.write_alias()));
        let mut chunks = Chunks::of(writes);
        while let Some(chunk) = chunks.next() {
            let request = Request {
                method: Method::Post,
                path: &path,
                query: query(refresh),
                content_type: "application/x-ndjson",
                body: Some(body(&writes[chunk.clone()])),
            };
            let reply = self.exchange(&request, deadline).await;
            chunks.answered(chunk, reply);
        }
        chunks.into_answers()
    }
}

impl Elastic {
    /// Does this index answer to a bulk? It is asked to write what it cannot have: a document at a place in its history where none can
    /// be. So nothing changes, and the question goes all the way to a shard.
    pub async fn answers_to_a_bulk(&self, target: &Target, limit: Duration) -> Result<(), Answer> {
        let path = format!("/{}/_bulk", percent::encode(&target.write_alias()));
        let content_type = "application/x-ndjson";
        let body = Some(Bytes::from_static(IMPOSSIBLE));
        let request = Request { method: Method::Post, path: &path, query: query(Refresh::No), content_type, body };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        let whole = |status| super::answer::of_request(status, &reply.body);
        match (reply.status, serde_json::from_slice::<serde_json::Value>(&reply.body)) {
            (200, Ok(answer)) => match answer.pointer("/items/0/index/status").and_then(serde_json::Value::as_u64) {
                Some(409) => Ok(()),
                Some(status) => Err(Answer::Unknown(format!("a probe was answered with status {status}"))),
                None => Err(whole(200)),
            },
            (status, _) => Err(whole(status)),
        }
    }
}

/// Nobody has this key, and no document was ever written at this number: a conflict, always.
const IMPOSSIBLE: &[u8] =
    b"{\"index\":{\"_id\":\"catchword-probe\",\"if_seq_no\":9223372036854775806,\"if_primary_term\":1}}\n{\"catchword_deleted\":true}\n";

/// `require_alias`: a missing alias is an error and never a surprise index. `timeout`: a shard that is down is then an
/// item's 503, not a time-out of the whole request.
fn query(refresh: Refresh) -> &'static [(&'static str, &'static str)] {
    const QUERY: [(&str, &str); 4] = [
        ("require_alias", "true"),
        ("timeout", "5s"),
        ("filter_path", "items.*._id,items.*.status,items.*.error.type,items.*.error.reason,items.*.error.caused_by"),
        ("refresh", "true"),
    ];
    match refresh {
        Refresh::No => &QUERY[..3],
        Refresh::Now => &QUERY,
    }
}

/// The body of a request. Two lines for each write: what to do, and the document.
pub fn body(writes: &[Write<'_>]) -> Bytes {
    let mut lines = Vec::with_capacity(writes.iter().map(Write::weight).sum());
    for write in writes {
        lines.extend_from_slice(b"{\"index\":{\"_id\":");
        lines.extend_from_slice(serde_json::Value::from(write.key).to_string().as_bytes());
        lines.extend_from_slice(format!(",\"version\":{},\"version_type\":\"external\"}}}}\n", write.version).as_bytes());
        let start = lines.len();
        lines.extend_from_slice(write.body.bytes());
        // a raw line break would end the document early and make the rest an action; in JSON it can only stand between tokens
        for byte in &mut lines[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        lines.push(b'\n');
    }
    Bytes::from(lines)
}

impl Write<'_> {
    /// About how many bytes of a bulk it takes.
    pub(crate) fn weight(&self) -> usize {
        const ACTION: usize = r#"{"index":{"_id":"","version":1234567890123456789,"version_type":"external"}}"#.len() + 2;
        ACTION + self.key.len() + self.body.bytes().len()
    }
}

impl Body {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Body::Document(json) => json,
            Body::Tombstone => br#"{"catchword_deleted":true}"#,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(writes: &[Write<'_>]) -> Vec<String> {
        let body = String::from_utf8(body(writes).to_vec()).unwrap();
        assert!(body.ends_with('\n'));
        body.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_write_is_two_lines_with_its_version() {
        let document = Body::Document(Bytes::from_static(br#"{"n":1}"#));
        let writes = [Write { key: "a", version: 2, body: document }, Write { key: "b", version: 3, body: Body::Tombstone }];
        assert_eq!(
            lines(&writes),
            [
                r#"{"index":{"_id":"a","version":2,"version_type":"external"}}"#,
                r#"{"n":1}"#,
                r#"{"index":{"_id":"b","version":3,"version_type":"external"}}"#,
                r#"{"catchword_deleted":true}"#,
            ]
        );
    }

    #[test]
    fn no_line_break_of_a_document_or_a_key_splits_the_bulk() {
        let document = Body::Document(Bytes::from_static(b"{\r\n\t\"n\": \"a\\nb\"\n}"));
        let written = lines(&[Write { key: "a\n\"/%é\r", version: 2, body: document }]);
        assert_eq!(written.len(), 2);
        let action: serde_json::Value = serde_json::from_str(&written[0]).unwrap();
        assert_eq!(action["index"]["_id"], "a\n\"/%é\r");
        assert_eq!(written[1], "{  \t\"n\": \"a\\nb\" }");
    }

    #[test]
    fn a_refresh_is_only_asked_for_when_wanted() {
        assert!(query(Refresh::No).iter().all(|(name, _)| *name != "refresh"));
        assert!(query(Refresh::Now).contains(&("refresh", "true")));
        assert!(query(Refresh::No).contains(&("require_alias", "true")));
    }
}
