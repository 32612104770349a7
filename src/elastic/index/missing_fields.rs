//! Brings an index in line with its file, as far as an index that is there can be.

use crate::elastic::client::Method;
use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

use super::difference::{Difference, Live};
use super::plan::IndexPlan;
use crate::elastic::ask::parse;
use crate::elastic::{Elastic, Error, Target, percent};

impl Elastic {
    /// How an index differs from its file.
    pub async fn difference(&self, plan: &IndexPlan, target: &Target) -> Result<Difference, Error> {
        Difference::between(plan, &self.live(target).await?)
    }

    /// Changes the settings that can be changed, and adds the fields that the file has and the index lacks, in one request: all of them or
    /// none. Where something else changed, nothing is done: that is a rebuild's. Doing it again changes nothing.
    pub async fn bring_in_line(&self, plan: &IndexPlan, target: &Target) -> Result<Difference, Error> {
        let found = self.difference(plan, target).await?;
        if found.changed.is_empty() && found.other_file {
            // first: more fields may need a higher limit
            if !found.new_settings.is_empty() {
                self.put_settings(target, &found.new_settings.clone().into()).await?;
            }
            // the digest goes with it: the index is in line with this file now
            let body = json!({ "properties": found.additions, "_meta": self.meta(plan, target).await? });
            let path = format!("/{}/_mapping", percent::encode(target.index()));
            self.ask(&format!("add fields to {target}"), Method::Put, &path, &[], Some(Bytes::from(body.to_string()))).await?;
        }
        Ok(found)
    }

    /// Makes an index of another installation ours. One that is not that one's is left as it is.
    pub async fn claim(&self, target: &Target, from: Uuid, installation: Uuid) -> Result<(), Error> {
        let seen = self.see(&[target.index()]).await?;
        let Some(mut meta) = seen.get(target.index()).filter(|seen| seen.check_owner(target.index(), from).is_ok()).map(|seen| seen.meta())
        else {
            return Ok(());
        };
        meta["catchword"]["installation"] = installation.to_string().into();
        let path = format!("/{}/_mapping", percent::encode(target.index()));
        let body = Bytes::from(json!({ "_meta": meta }).to_string());
        self.ask(&format!("take over {target}"), Method::Put, &path, &[], Some(body)).await?;
        Ok(())
    }

    /// The index's `_meta` with what the file says now; what a rebuild wrote into it stays.
    async fn meta(&self, plan: &IndexPlan, target: &Target) -> Result<Value, Error> {
        let mut meta = plan.mappings()?["_meta"].take();
        let rebuild = self.see(&[target.index()]).await?.get(target.index()).and_then(|seen| seen.rebuild());
        if let Some(rebuild) = rebuild {
            meta["catchword"]["rebuild"] = rebuild.into();
        }
        Ok(meta)
    }

    async fn live(&self, target: &Target) -> Result<Live, Error> {
        let doing = format!("look at the mapping of {target}");
        let query = [("flat_settings", "true"), ("filter_path", "*.mappings,*.settings")];
        let body = self.ask(&doing, Method::Get, &format!("/{}", percent::encode(target.index())), &query, None).await?;
        let mut all: std::collections::BTreeMap<String, Live> = parse(&doing, &body)?;
        all.remove(target.index()).ok_or_else(|| Error::NoIndex { index: target.index().to_owned() })
    }
}
