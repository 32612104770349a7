use std::time::Duration;

use super::client::Method;
use bytes::Bytes;
use serde::Deserialize;
use tokio::time::Instant;

use super::client::Request;
use super::{Answer, Elastic, Error, answer, percent};

/// How long a question of the operator's kind may take (version, count, index, alias). The master may be slow; a person
/// or a start-up waits, no batch does.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

impl Elastic {
    /// How many documents readers see. Tombstones are not counted: the readers' alias filters them.
    pub async fn document_count(&self, alias: &str) -> Result<u64, Error> {
        #[derive(Deserialize)]
        struct Count {
            count: u64,
        }
        let doing = format!("count the documents of {alias}");
        let path = format!("/{}/_count", percent::encode(alias));
        let body = self.ask(&doing, Method::Get, &path, &[("filter_path", "count")], None).await?;
        Ok(parse::<Count>(&doing, &body)?.count)
    }

    /// The version under which search shows a document; none: it does not.
    pub async fn searchable_version(&self, alias: &str, key: &str) -> Result<Option<i64>, Error> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Found {
            hits: Hits,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Hits {
            hits: Vec<Hit>,
        }
        #[derive(Deserialize)]
        struct Hit {
            #[serde(rename = "_version")]
            version: i64,
        }
        let doing = format!("search {alias}");
        let path = format!("/{}/_search", percent::encode(alias));
        let query = serde_json::json!({ "query": { "ids": { "values": [key] } }, "version": true, "_source": false }).to_string();
        let body = self.ask(&doing, Method::Post, &path, &[("filter_path", "hits.hits._version")], Some(query.into())).await?;
        Ok(parse::<Found>(&doing, &body)?.hits.hits.first().map(|hit| hit.version))
    }

    /// Asks something that is either done or an error: for people and start-up, not for batches.
    pub(super) async fn ask(
        &self,
        doing: &str,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<Bytes, Error> {
        let request = Request { method, path, query, content_type: "application/json", body };
        let failed = |answer| Error::Request { doing: doing.to_owned(), answer };
        let reply = self.exchange(&request, Instant::now() + PATIENCE).await.map_err(failed)?;
        match reply.status {
            200..=299 => Ok(reply.body),
            // these texts hold names of the operator's own making and no document: shown as they are
            status => Err(failed(answer::of_question(status, &reply.body))),
        }
    }
}

/// Reads an answer's JSON; one that cannot be read is an answer that is unknown.
pub(super) fn parse<'a, T: Deserialize<'a>>(doing: &str, body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|_| unclear(doing))
}

pub(super) fn unclear(doing: &str) -> Error {
    let answer = Answer::Unknown("the answer is not what elasticsearch would say: is something else at this address?".to_owned());
    Error::Request { doing: doing.to_owned(), answer }
}
