//! Equal numbers mean equal documents: an audit can be asked to see that it is so.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Number, Value};

use super::{Fields, Run, differing_fields};
use crate::collection::{Built, Document};
use crate::elastic::{Answer, Stored, Target};
use crate::{Error, database, elastic};

/// Documents asked for at once; what is above a bulk's bytes comes in further rounds.
const ROUND: usize = 500;
/// The limit of reading one round from an index.
const LOOK: Duration = Duration::from_secs(20);

/// Keys and the indices in which their documents differ under the same version, and in which fields.
pub(super) type OtherContent = BTreeMap<(String, usize), Fields>;

impl Run<'_> {
    /// Of these keys, those whose document differs under the same version, with the indices in which it does, and how. Keys whose versions differ,
    /// or that the view does not return (any more), are not its business.
    pub(super) async fn other_content(&self, targets: &[Target], keys: &[&str]) -> Result<OtherContent, Error> {
        let mut differing = OtherContent::new();
        let mut vectors = Vec::new();
        for target in targets {
            vectors.push(self.context.elastic.keeps_sources(target).await?.unwrap_or_default());
        }
        let mut pending: Vec<Vec<&str>> = keys.chunks(ROUND).map(<[&str]>::to_vec).collect();
        while let Some(round) = pending.pop() {
            self.check_stop()?;
            let mut transaction = database::begin(&self.context.pool).await?;
            let (built, _) = self.collection.bodies(&mut transaction, &round).await?;
            transaction.commit().await?;
            let later = |built: &&Built| matches!(built.document, Document::Later(_));
            let later: Vec<&str> = built.iter().filter(later).filter_map(|b| round.iter().find(|key| **key == b.key).copied()).collect();
            // each round brings the first of them at least
            pending.extend(later.chunks(ROUND / 10).map(<[&str]>::to_vec));
            let wanted: Vec<(&str, i64, &[u8])> = built.iter().filter_map(body).collect();
            let asked: Vec<&str> = wanted.iter().map(|(key, ..)| *key).collect();
            for (n, target) in targets.iter().enumerate() {
                let stored = self.sources(target, &asked).await?;
                for ((key, version, body), stored) in wanted.iter().zip(stored) {
                    let Some(stored) = stored.filter(|stored| stored.version == *version) else { continue };
                    let source = vectors[n].rounded(&stored.source, body);
                    if !is_same(&source, body) {
                        differing.insert(((*key).to_owned(), n), differing_fields(body, &source));
                    }
                }
            }
        }
        Ok(differing)
    }

    pub(super) async fn sources(&self, target: &Target, keys: &[&str]) -> Result<Vec<Option<Stored>>, Error> {
        let ids = self.collection.ids(&self.context.pool, keys).await?;
        let ids = ids.of_all(keys);
        let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        let failed = |answer: Answer| elastic::Error::Request { doing: format!("read documents of {target}"), answer };
        let mut tries = 0;
        loop {
            match self.context.elastic.sources(target, &ids, LOOK).await {
                Err(Answer::Unknown(_) | Answer::Unreachable(_) | Answer::Unavailable(_) | Answer::Overloaded(_)) if tries < 5 => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_secs(1 << tries)).await;
                }
                read => return Ok(read.map_err(failed)?),
            }
        }
    }
}

fn body(built: &Built) -> Option<(&str, i64, &[u8])> {
    match &built.document {
        Document::Body(body) => Some((&built.key, built.version, body)),
        // it was never sent
        Document::TooLarge(_) | Document::Later(_) => None,
    }
}

/// The same JSON value? Numbers count as values, the order of a document's fields and the blanks between them do not.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    a == b || matches!((value(a), value(b)), (Some(a), Some(b)) if are_same(&a, &b))
}

pub(super) fn are_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => is_same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| are_same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| are_same(a, b))),
        _ => a == b,
    }
}

fn is_same_number(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn the_same_value_is_the_same_however_it_is_written() {
        for (a, b, same) in [
            (r#"{"a":1,"b":[1,2]}"#, r#"{ "b": [1, 2], "a": 1.0 }"#, true),
            (r#"{"a":100}"#, r#"{"a":1e2}"#, true),
            (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#, false),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false),
            (r#"{"a":null}"#, r#"{}"#, false),
            (r#"{"a":"1"}"#, r#"{"a":1}"#, false),
            (r#"{"a":"\u00e9"}"#, r#"{"a":"é"}"#, true),
            ("not json", "not json", true),
            ("not json", "{}", false),
        ] {
            assert_eq!(is_same(a.as_bytes(), b.as_bytes()), same, "{a} {b}");
        }
    }
}
