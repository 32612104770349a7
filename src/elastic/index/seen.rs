use std::collections::BTreeMap;

use crate::elastic::client::Method;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::plan::readers_alias;
use crate::elastic::ask::parse;
use crate::elastic::{Elastic, Error, percent};

/// The indices behind some names, by their own names.
pub(super) type Seen = BTreeMap<String, SeenIndex>;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SeenIndex {
    #[serde(default)]
    pub aliases: BTreeMap<String, Value>,
    #[serde(default)]
    mappings: SeenMappings,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct SeenMappings {
    #[serde(rename = "_meta", default)]
    meta: Value,
}

impl Elastic {
    /// Reads what is behind these names, be they indices or aliases. A name without anything behind it adds nothing.
    pub(super) async fn see(&self, names: &[&str]) -> Result<Seen, Error> {
        let doing = format!("look at index {}", names.join(", "));
        let names: Vec<String> = names.iter().map(|name| percent::encode(name)).collect();
        let query = [
            ("ignore_unavailable", "true"),
            // the uuid is there so that an index without aliases and _meta is still seen
            ("filter_path", "*.aliases,*.mappings._meta,*.settings.index.uuid"),
        ];
        let body = self.ask(&doing, Method::Get, &format!("/{}", names.join(",")), &query, None).await?;
        parse(&doing, &body)
    }
}

impl SeenIndex {
    pub fn check_owner(&self, index: &str, installation: Uuid) -> Result<(), Error> {
        match self.owner("installation") {
            None => Err(Error::NotOurs { index: index.to_owned(), ours: installation }),
            Some(theirs) if theirs == installation.to_string() => Ok(()),
            Some(theirs) => Err(Error::OtherInstallation { index: index.to_owned(), theirs: theirs.to_owned(), ours: installation }),
        }
    }

    pub fn check_collection(&self, index: &str, collection: &str) -> Result<(), Error> {
        match self.owner("collection") {
            Some(theirs) if theirs == collection => Ok(()),
            theirs => Err(Error::OtherCollection {
                index: index.to_owned(),
                theirs: theirs.unwrap_or("unknown").to_owned(),
                ours: collection.to_owned(),
            }),
        }
    }

    /// Whether readers see it through this alias, and no tombstones.
    pub fn hides_tombstones(&self, alias: &str) -> bool {
        self.aliases.get(alias).and_then(|alias| alias.get("filter")) == readers_alias().get("filter")
    }

    /// Whether a write to this alias ends here. An alias that says `is_write_index: false` is there and takes nothing.
    pub fn takes_writes(&self, alias: &str) -> bool {
        self.aliases.get(alias).is_some_and(|alias| alias.get("is_write_index") != Some(&Value::Bool(false)))
    }

    /// The rebuild that made it, if one did.
    pub fn rebuild(&self) -> Option<i64> {
        self.mappings.meta.get("catchword")?.get("rebuild")?.as_i64()
    }

    pub fn meta(&self) -> Value {
        self.mappings.meta.clone()
    }

    fn owner(&self, part: &str) -> Option<&str> {
        self.mappings.meta.get("catchword")?.get(part)?.as_str()
    }
}

/// The one index that has this alias, if any has.
pub(super) fn behind<'a>(seen: &'a Seen, alias: &str) -> Result<Option<(&'a str, &'a SeenIndex)>, Error> {
    if seen.contains_key(alias) {
        return Err(Error::NameTaken { name: alias.to_owned() });
    }
    let mut having = seen.iter().filter(|(_, index)| index.aliases.contains_key(alias));
    let first = having.next();
    if having.next().is_none() {
        return Ok(first.map(|(name, index)| (name.as_str(), index)));
    }
    let names = seen.iter().filter(|(_, index)| index.aliases.contains_key(alias)).map(|(name, _)| name.as_str());
    Err(Error::AliasOfMany { alias: alias.to_owned(), indices: names.collect::<Vec<_>>().join(", ") })
}
