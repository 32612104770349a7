//! The one place that deletes documents: tombstones, under their own versions.
//!
//! A delete is forgotten by Elasticsearch after a minute, so it comes only when no write of the key's life can be on its way any more.

use std::borrow::Cow;
use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use serde::Deserialize;
use tokio::time::Instant;

use super::client::Request;
use super::{Answer, Elastic, Target, answer, percent};

impl Elastic {
    /// Deletes these tombstones, each under the version that was seen: what came after it stays. Says how many were applied; whether they
    /// are gone is for a later look.
    pub async fn sweep(&self, target: &Target, tombstones: &[(&str, i64)], limit: Duration) -> Result<u64, Answer> {
        if tombstones.is_empty() {
            return Ok(0);
        }
        let request = Request {
            method: Method::Post,
            path: &format!("/{}/_bulk", percent::encode(&target.write_alias())),
            // a versioned delete makes an index that is missing; with require_alias it is an error
            query: &[("require_alias", "true"), ("timeout", "5s"), ("filter_path", "items.delete._id,items.delete.status")],
            content_type: "application/x-ndjson",
            body: Some(body(tombstones)),
        };
        let reply = self.exchange(&request, Instant::now() + limit).await?;
        match reply.status {
            200 => read(&reply.body, tombstones),
            status => Err(answer::of_request(status, &reply.body)),
        }
    }
}

/// `external_gte`, because plain `external` conflicts with the version that is there.
fn body(tombstones: &[(&str, i64)]) -> Bytes {
    let lines = tombstones.iter().map(|(key, version)| {
        let key = serde_json::Value::from(*key);
        format!("{{\"delete\":{{\"_id\":{key},\"version\":{version},\"version_type\":\"external_gte\"}}}}\n")
    });
    Bytes::from(lines.collect::<String>())
}

fn read(body: &[u8], tombstones: &[(&str, i64)]) -> Result<u64, Answer> {
    #[derive(Deserialize)]
    struct Items<'a> {
        #[serde(borrow)]
        items: Vec<Item<'a>>,
    }
    #[derive(Deserialize)]
    struct Item<'a> {
        #[serde(borrow)]
        delete: Outcome<'a>,
    }
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(rename = "_id", borrow)]
        id: Cow<'a, str>,
        status: u16,
    }
    let Ok(Items { items }) = serde_json::from_slice(body) else {
        return Err(Answer::Unknown("the answer to a sweep cannot be read".to_owned()));
    };
    if items.len() != tombstones.len() || items.iter().zip(tombstones).any(|(item, (key, _))| item.delete.id != *key) {
        return Err(Answer::Unknown("the answer to a sweep is about other keys".to_owned()));
    }
    Ok(items.iter().filter(|item| item.delete.status == 200).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_carries_its_version() {
        let lines = String::from_utf8(body(&[("a\"b", 5), ("c", 7)]).to_vec()).unwrap();
        let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], serde_json::json!({ "delete": { "_id": "a\"b", "version": 5, "version_type": "external_gte" } }));
        assert_eq!(lines[1]["delete"]["version"], 7);
    }

    #[test]
    fn what_was_newer_or_gone_is_not_counted() {
        let answer =
            br#"{"items":[{"delete":{"_id":"a","status":200}},{"delete":{"_id":"b","status":409}},{"delete":{"_id":"c","status":404}}]}"#;
        assert_eq!(read(answer, &[("a", 1), ("b", 3), ("c", 5)]).unwrap(), 1);
        assert!(read(answer, &[("a", 1), ("b", 3)]).is_err());
        assert!(read(answer, &[("a", 1), ("x", 3), ("c", 5)]).is_err());
    }
}
