//! Which versions Elasticsearch has.

use std::borrow::Cow;
use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::client::Request;
use super::fault::Fault;
use super::{Answer, Elastic, Target, answer, percent};

/// What Elasticsearch has under one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Has {
    /// A document, or a tombstone, at this version.
    Present(i64),
    /// Nothing.
    Absent,
    /// It could not be seen, and why. Nothing may be concluded from it.
    Unknown(String),
}

impl Elastic {
    /// Looks at the keys in this index, in their order.
    ///
    /// It reads in real time, not what a search would find: a search is late by the refresh interval, and a job settled on
    /// a late view is a lost document.
    pub async fn look(&self, target: &Target, keys: &[&str], limit: Duration) -> Result<Vec<Has>, Answer> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let request = Request {
            method: Method::Post,
            path: &format!("/{}/_mget", percent::encode(&target.write_alias())),
            query: &[
                ("_source", "false"),
                ("realtime", "true"),
                ("filter_path", "docs._id,docs._version,docs.found,docs.error.type,docs.error.reason"),
            ],
            content_type: "application/json",
            body: Some(question(keys)?),
        };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        match reply.status {
            200 => read(&reply.body, keys),
            status => Err(answer::of_request(status, &reply.body)),
        }
    }
}

fn question(keys: &[&str]) -> Result<Bytes, Answer> {
    #[derive(Serialize)]
    struct Question<'a> {
        ids: &'a [&'a str],
    }
    let json = serde_json::to_vec(&Question { ids: keys });
    json.map(Bytes::from).map_err(|error| Answer::Unknown(format!("the keys could not be written as JSON: {error}")))
}

/// Reads an answer against the keys that were asked for. One that cannot be read, or has more or fewer items, says nothing
/// about any key.
pub fn read(body: &[u8], keys: &[&str]) -> Result<Vec<Has>, Answer> {
    #[derive(Deserialize)]
    struct Docs<'a> {
        #[serde(borrow)]
        docs: Vec<Doc<'a>>,
    }
    let Ok(Docs { docs }) = serde_json::from_slice(body) else {
        return Err(Answer::Unknown("the answer to a look cannot be read".to_owned()));
    };
    if docs.len() != keys.len() {
        return Err(Answer::Unknown(format!("a look at {} keys was answered for {}", keys.len(), docs.len())));
    }
    // an index that is closed or gone says so of every key: the index is concerned, not the keys
    if let Some(first) = docs.first().and_then(Doc::blocked)
        && docs.iter().all(|doc| doc.blocked().is_some())
    {
        return Err(first);
    }
    Ok(docs.into_iter().zip(keys).map(|(doc, key)| doc.says_of(key)).collect())
}

#[derive(Deserialize)]
struct Doc<'a> {
    #[serde(rename = "_id", borrow, default)]
    id: Cow<'a, str>,
    #[serde(rename = "_version")]
    version: Option<i64>,
    found: Option<bool>,
    #[serde(borrow)]
    error: Option<Fault<'a>>,
}

impl Doc<'_> {
    fn blocked(&self) -> Option<Answer> {
        let fault = self.error.as_ref()?;
        // an item of a look has no status of its own, and the type decides before it would
        let answer = answer::of_item(404, Some(&fault.error_type), Some(&fault.reason));
        matches!(answer, Answer::Blocked(_)).then_some(answer)
    }

    fn says_of(&self, key: &str) -> Has {
        if let Some(error) = &self.error {
            // it names the index and the key, never a document
            return Has::Unknown(error.plain(200));
        }
        match (self.id == key, self.found, self.version) {
            (true, Some(true), Some(version)) => Has::Present(version),
            (true, Some(false), _) => Has::Absent,
            (true, _, _) => Has::Unknown("the answer to a look says neither found nor absent".to_owned()),
            (false, _, _) => Has::Unknown("the answer to a look is about another key".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Has, question, read};
    use crate::elastic::Answer;

    #[test]
    fn a_key_is_present_absent_or_unknown() {
        // by 9.4.3; the second and the last as it answers for a closed and a missing index
        let body = br#"{"docs":[{"_id":"it's/k","_version":2,"found":true},{"_id":"z","error":{"type":"index_closed_exception","reason":"closed"}},{"_id":"nope","found":false},{"_id":"x","error":{"type":"index_not_found_exception","reason":"no such index [curlprobe-000001-write]"}}]}"#;
        let has = read(body, &["it's/k", "z", "nope", "x"]).unwrap();
        assert_eq!(has[0], Has::Present(2));
        assert_eq!(has[1], Has::Unknown("index_closed_exception: closed".to_owned()));
        assert_eq!(has[2], Has::Absent);
        assert!(matches!(&has[3], Has::Unknown(why) if why.starts_with("index_not_found_exception")));
    }

    #[test]
    fn an_index_that_says_of_every_key_that_it_is_closed_is_blocked() {
        let body = br#"{"docs":[{"_id":"a","error":{"type":"index_closed_exception","reason":"closed"}},{"_id":"b","error":{"type":"index_closed_exception","reason":"closed"}}]}"#;
        assert_eq!(read(body, &["a", "b"]), Err(Answer::Blocked("index_closed_exception: closed".to_owned())));
    }

    #[test]
    fn an_answer_about_another_key_or_without_a_word_is_unknown() {
        let body =
            br#"{"docs":[{"_id":"b","_version":2,"found":true},{"_id":"b","found":true},{"_id":"c","_version":3},{"found":false},{}]}"#;
        let has = read(body, &["a", "b", "c", "d", "e"]).unwrap();
        assert!(has.iter().all(|has| matches!(has, Has::Unknown(_))), "{has:?}");
    }

    #[test]
    fn an_answer_that_is_cut_or_does_not_fit_says_nothing() {
        let whole = br#"{"docs":[{"_id":"a","_version":2,"found":true}]}"#;
        assert!(read(whole, &["a"]).is_ok());
        assert!(matches!(read(whole, &["a", "b"]), Err(Answer::Unknown(_))));
        assert!(matches!(read(whole, &[]), Err(Answer::Unknown(_))));
        for end in 0..whole.len() {
            assert!(matches!(read(&whole[..end], &["a"]), Err(Answer::Unknown(_))), "{end}");
        }
        assert!(matches!(read(b"{}", &["a"]), Err(Answer::Unknown(_))));
    }

    #[test]
    fn keys_are_escaped_and_met_again_when_escaped() {
        let keys = ["a/b%c", "\"q\"", "new\nline\u{1}", "é💡"];
        let asked = question(&keys).unwrap();
        let asked: serde_json::Value = serde_json::from_slice(&asked).unwrap();
        assert_eq!(asked, serde_json::json!({ "ids": keys }));
        let body = br#"{"docs":[{"_id":"a/b%c","found":false},{"_id":"\"q\"","found":false},{"_id":"new\nline\u0001","found":false},{"_id":"\u00e9\ud83d\udca1","found":false}]}"#;
        assert_eq!(read(body, &keys).unwrap(), vec![Has::Absent; 4]);
    }
}
