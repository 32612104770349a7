use elasticsearch::http::Method;
use serde_json::Value;

use crate::elastic::ask::parse;
use crate::elastic::{Elastic, Error, Target, percent};

impl Elastic {
    /// The uuid of an index. It changes when the index is deleted and made anew, or restored from a snapshot.
    pub async fn index_uuid(&self, target: &Target) -> Result<String, Error> {
        let doing = format!("look at index {target}");
        let path = format!("/{}", percent::encode(target.index()));
        let body = self.ask(&doing, Method::Get, &path, &[("filter_path", "*.settings.index.uuid")], None).await?;
        let seen: Value = parse(&doing, &body)?;
        let uuid = seen.as_object().and_then(|indices| indices.values().next()).and_then(|index| index.pointer("/settings/index/uuid"));
        uuid.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| Error::NoIndex { index: target.index().to_owned() })
    }
}
