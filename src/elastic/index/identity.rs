use std::collections::BTreeSet;

use crate::elastic::client::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::elastic::ask::parse;
use crate::elastic::{Elastic, Error, Target, percent};

impl Elastic {
    /// The uuid of an index, and how many shards it has. The uuid changes when the index is deleted and made again, or restored from a
    /// snapshot.
    pub async fn identity(&self, target: &Target) -> Result<(String, usize), Error> {
        let doing = format!("look at index {target}");
        let path = format!("/{}", percent::encode(target.index()));
        let asked = [("filter_path", "*.settings.index.uuid,*.settings.index.number_of_shards")];
        let seen: Value = parse(&doing, &self.ask(&doing, Method::Get, &path, &asked, None).await?)?;
        let settings = seen.as_object().and_then(|indices| indices.values().next()).and_then(|index| index.pointer("/settings/index"));
        let said = |name| settings.and_then(|settings| settings.get(name)).and_then(Value::as_str);
        let uuid = said("uuid").ok_or_else(|| Error::NoIndex { index: target.index().to_owned() })?;
        Ok((uuid.to_owned(), said("number_of_shards").and_then(|n| n.parse().ok()).unwrap_or(1)))
    }

    /// The shards that documents under these ids are in.
    pub async fn shards_of(&self, target: &Target, ids: &[String]) -> Result<BTreeSet<u32>, Error> {
        #[derive(Deserialize)]
        struct Found {
            #[serde(default)]
            shards: Vec<Vec<Copy>>,
        }
        #[derive(Deserialize)]
        struct Copy {
            shard: u32,
        }
        let doing = format!("ask for the shards of {target}");
        let path = format!("/{}/_search_shards", percent::encode(&target.write_alias()));
        let body = self.ask(&doing, Method::Get, &path, &[("routing", &ids.join(",")), ("filter_path", "shards.shard")], None).await?;
        Ok(parse::<Found>(&doing, &body)?.shards.into_iter().flatten().map(|copy| copy.shard).collect())
    }
}
