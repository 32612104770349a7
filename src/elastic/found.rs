//! What search shows of some documents: the last refresh, not the last write.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::client::Request;
use super::{Answer, Elastic, answer, percent};

/// Ids in one search at most. An index gives 10,000 hits at once, unless it is set to fewer.
pub const MOST_FOUND: usize = 250;

impl Elastic {
    /// Under which versions search shows these documents through the readers' alias, by id. What it does not show is not in it.
    ///
    /// Only a search tells. An index that nobody searched for a while does not refresh on its own; a search makes it do so.
    pub async fn found(&self, alias: &str, ids: &[&str], limit: Duration) -> Result<HashMap<String, i64>, Answer> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let question = json!({
            "size": ids.len(),
            "_source": false,
            "version": true,
            "track_total_hits": false,
            "sort": ["_doc"],
            "query": { "ids": { "values": ids } },
        });
        let request = Request {
            method: Method::Post,
            path: &format!("/{}/_search", percent::encode(alias)),
            query: &[
                // a shard that is down would hide its documents
                ("allow_partial_search_results", "false"),
                ("filter_path", "timed_out,hits.hits._id,hits.hits._version"),
            ],
            content_type: "application/json",
            body: Some(Bytes::from(question.to_string())),
        };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        match reply.status {
            200 => read(&reply.body),
            status => Err(answer::of_question(status, &reply.body)),
        }
    }
}

fn read(body: &[u8]) -> Result<HashMap<String, i64>, Answer> {
    #[derive(Deserialize)]
    struct Found<'a> {
        timed_out: bool,
        #[serde(borrow, default)]
        hits: Hits<'a>,
    }
    #[derive(Deserialize, Default)]
    struct Hits<'a> {
        #[serde(borrow, default)]
        hits: Vec<Hit<'a>>,
    }
    #[derive(Deserialize)]
    struct Hit<'a> {
        #[serde(rename = "_id", borrow)]
        id: Cow<'a, str>,
        #[serde(rename = "_version")]
        version: i64,
    }
    match serde_json::from_slice(body) {
        Ok(Found { timed_out: false, hits }) => Ok(hits.hits.into_iter().map(|hit| (hit.id.into_owned(), hit.version)).collect()),
        Ok(_) => Err(Answer::Unknown("a search ran out of time".to_owned())),
        Err(_) => Err(Answer::Unknown("the answer to a search cannot be read".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_has_its_version_and_what_is_not_is_left_out() {
        // by 9.4.3: without a hit there is no `hits` at all
        let body = br#"{"timed_out":false,"hits":{"hits":[{"_id":"it's/k","_version":8},{"_id":"\u00e9","_version":12}]}}"#;
        assert_eq!(read(body), Ok(HashMap::from([("it's/k".to_owned(), 8), ("é".to_owned(), 12)])));
        assert_eq!(read(br#"{"timed_out":false}"#), Ok(HashMap::new()));
    }

    #[test]
    fn an_answer_that_is_not_whole_says_nothing() {
        let bodies: [&[u8]; 4] =
            [br#"{"timed_out":true,"hits":{"hits":[]}}"#, b"{}", br#"{"timed_out":false,"hits":{"hits":[{"_id":"a"}]}}"#, b""];
        for body in bodies {
            assert!(matches!(read(body), Err(Answer::Unknown(_))), "{}", String::from_utf8_lossy(body));
        }
    }
}
