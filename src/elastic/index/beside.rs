//! A second index beside the one that readers see: made for filling, made fit for readers, and swapped in.

use crate::elastic::client::Method;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::plan::{IndexPlan, readers_alias};
use super::seen::behind;
use crate::elastic::ask::parse;
use crate::elastic::{Answer, Elastic, Error, Target, percent};

/// What is off while an index is filled: nobody reads it yet, so nothing has to be searchable or kept twice.
const WHILE_FILLING: [(&str, &str); 3] =
    [("index.refresh_interval", "-1"), ("index.number_of_replicas", "0"), ("index.auto_expand_replicas", "false")];

impl IndexPlan {
    /// The request that creates a second index: no readers' alias, and off what filling does not need.
    pub fn create_beside_request(&self, target: &Target, rebuild: i64) -> Result<Value, Error> {
        let (mut settings, mut mappings) = (self.settings()?, self.mappings()?);
        settings.extend(WHILE_FILLING.map(|(name, value)| (name.to_owned(), value.into())));
        mappings["_meta"]["catchword"]["rebuild"] = rebuild.into();
        let write = json!({ target.write_alias(): { "is_write_index": true } });
        Ok(json!({ "settings": settings, "mappings": mappings, "aliases": write }))
    }

    /// The settings that make it fit for readers: as the file says, else as the index has them that they see now.
    fn fit_for_readers(&self, seen: &Map<String, Value>) -> Result<Value, Error> {
        let file = self.settings()?;
        let as_before = |name: &str| file.get(name).or_else(|| seen.get(name)).cloned().unwrap_or(Value::Null);
        Ok(WHILE_FILLING.iter().map(|(name, _)| ((*name).to_owned(), as_before(name))).collect::<Map<_, _>>().into())
    }
}

impl Elastic {
    /// Creates a second index. Doing it again changes nothing; one of that name that this rebuild did not make is refused.
    pub async fn create_beside(&self, plan: &IndexPlan, target: &Target, rebuild: i64) -> Result<(), Error> {
        let request = plan.create_beside_request(target, rebuild)?;
        if self.create(target.index(), &request).await? {
            return Ok(());
        }
        let seen = self.see(&[target.index()]).await?;
        let found = seen.get(target.index()).ok_or_else(|| Error::NoIndex { index: target.index().to_owned() })?;
        found.check_owner(target.index(), plan.installation)?;
        match found.rebuild() {
            Some(theirs) if theirs == rebuild => Ok(()),
            _ => Err(Error::LeftOver { index: target.index().to_owned() }),
        }
    }

    /// A name for the next index of an alias that no index has.
    pub async fn next_index(&self, alias: &str, after: &Target) -> Result<Target, Error> {
        let number = after.index().rsplit('-').next().and_then(|number| number.parse::<u32>().ok()).unwrap_or(1);
        for next in number + 1..number + 1000 {
            let target = Target::new(format!("{alias}-{next:06}"));
            if self.see(&[target.index(), &target.write_alias()]).await?.is_empty() {
                return Ok(target);
            }
        }
        Err(Error::LeftOver { index: format!("{alias}-{:06}", number + 1) })
    }

    /// Gives an index back what was off while it was filled, and waits until no copy of it is being made, for half a minute at most;
    /// false: some still are.
    pub async fn make_fit(&self, plan: &IndexPlan, new: &Target, old: &Target) -> Result<bool, Error> {
        let fit = plan.fit_for_readers(&self.settings_of(old).await?)?;
        self.put_settings(new, &fit).await?;
        self.copies_are_made(new).await
    }

    async fn copies_are_made(&self, target: &Target) -> Result<bool, Error> {
        #[derive(Deserialize)]
        struct Health {
            timed_out: bool,
        }
        let doing = format!("wait for the copies of {target}");
        let path = format!("/_cluster/health/{}", percent::encode(target.index()));
        let query = [("wait_for_no_initializing_shards", "true"), ("timeout", "20s"), ("filter_path", "timed_out")];
        match self.ask(&doing, Method::Get, &path, &query, None).await {
            Ok(body) => Ok(!parse::<Health>(&doing, &body)?.timed_out),
            // that is how it says that the time is over
            Err(Error::Request { answer: Answer::Unknown(why), .. }) if why.contains("408") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes everything that an index holds searchable.
    pub async fn refresh(&self, target: &Target) -> Result<(), Error> {
        let path = format!("/{}/_refresh", percent::encode(target.index()));
        self.ask(&format!("refresh {target}"), Method::Post, &path, &[], None).await.map(|_| ())
    }

    /// How often an index makes what was written searchable, if it has that from anybody.
    pub async fn refresh_interval(&self, target: &Target) -> Result<Option<String>, Error> {
        let settings = self.settings_of(target).await?;
        Ok(settings.get("index.refresh_interval").and_then(Value::as_str).map(str::to_owned))
    }

    /// Changes that; none: Elasticsearch's own default.
    pub async fn set_refresh_interval(&self, target: &Target, interval: Option<&str>) -> Result<(), Error> {
        self.put_settings(target, &json!({ "index.refresh_interval": interval })).await
    }

    /// The index that readers see through this alias.
    pub async fn readers_see(&self, alias: &str) -> Result<Option<Target>, Error> {
        let seen = self.see(&[alias]).await?;
        Ok(behind(&seen, alias)?.map(|(index, _)| Target::new(index)))
    }

    /// Moves the readers' alias from one index to another, and with it the search alias, if the first index has it. All in one step:
    /// there is no moment in which one leads nowhere or to both. It fails, and changes nothing, if one does not lead to the first.
    pub async fn move_alias(&self, alias: &str, search_alias: Option<&str>, from: &Target, to: &Target) -> Result<(), Error> {
        let mut moved = vec![alias];
        if let Some(search_alias) = search_alias {
            let seen = self.see(&[from.index()]).await?;
            // one that is lost is not made up for here: only `migrate` knows whether it is still wanted
            moved.extend(seen.get(from.index()).and_then(|from| from.aliases.get_key_value(search_alias)).map(|_| search_alias));
        }
        let actions = moved.into_iter().flat_map(|alias| {
            let mut add = readers_alias();
            add["index"] = to.index().into();
            add["alias"] = alias.into();
            [json!({ "remove": { "index": from.index(), "alias": alias, "must_exist": true } }), json!({ "add": add })]
        });
        let body = Bytes::from(json!({ "actions": actions.collect::<Vec<_>>() }).to_string());
        self.ask(&format!("move the alias {alias} from {from} to {to}"), Method::Post, "/_aliases", &[], Some(body)).await?;
        Ok(())
    }

    /// Does this index belong to this installation, and is it really an index? One that is gone is fine.
    pub async fn may_be_dropped(&self, target: &Target, alias: &str, installation: Uuid) -> Result<(), Error> {
        let seen = self.see(&[target.index(), alias]).await?;
        let Some(found) = seen.get(target.index()) else { return Ok(()) };
        found.check_owner(target.index(), installation)?;
        match found.aliases.contains_key(alias) {
            false => Ok(()),
            true => Err(Error::StillRead { index: target.index().to_owned(), alias: alias.to_owned() }),
        }
    }

    pub(super) async fn settings_of(&self, target: &Target) -> Result<Map<String, Value>, Error> {
        #[derive(Deserialize)]
        struct Settings {
            settings: Map<String, Value>,
        }
        let doing = format!("read the settings of {target}");
        let path = format!("/{}/_settings", percent::encode(target.index()));
        let body = self.ask(&doing, Method::Get, &path, &[("flat_settings", "true")], None).await?;
        let mut all: std::collections::BTreeMap<String, Settings> = parse(&doing, &body)?;
        let found = all.remove(target.index()).ok_or_else(|| Error::NoIndex { index: target.index().to_owned() })?;
        Ok(found.settings)
    }

    pub(super) async fn put_settings(&self, target: &Target, settings: &Value) -> Result<(), Error> {
        let path = format!("/{}/_settings", percent::encode(target.index()));
        let body = Bytes::from(settings.to_string());
        self.ask(&format!("change the settings of {target}"), Method::Put, &path, &[], Some(body)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(settings: Value) -> IndexPlan {
        let mapping = json!({ "settings": settings, "mappings": { "properties": {} } });
        IndexPlan { alias: "note".to_owned(), search_alias: None, mapping, installation: Uuid::from_u128(7), collection: "note".to_owned() }
    }

    #[test]
    fn a_second_index_is_made_for_filling_whatever_the_file_says() {
        for settings in [
            json!({ "number_of_replicas": 2, "refresh_interval": "30s" }),
            json!({ "index": { "number_of_replicas": 2, "refresh_interval": "30s" } }),
            json!({ "index.number_of_replicas": 2, "index.refresh_interval": "30s" }),
        ] {
            let request = plan(settings.clone()).create_beside_request(&Target::new("note-000002"), 5).unwrap();
            assert_eq!(request["settings"]["index.number_of_replicas"], "0", "{settings}");
            assert_eq!(request["settings"]["index.refresh_interval"], "-1", "{settings}");
            assert_eq!(request["mappings"]["_meta"]["catchword"]["rebuild"], 5);
            assert_eq!(request["aliases"], json!({ "note-000002-write": { "is_write_index": true } }), "no reader sees it");
            let fit = plan(settings).fit_for_readers(&Map::new()).unwrap();
            assert_eq!(fit, json!({ "index.number_of_replicas": 2, "index.refresh_interval": "30s", "index.auto_expand_replicas": null }));
        }
    }

    #[test]
    fn what_the_file_does_not_say_is_as_readers_have_it_now() {
        let seen = json!({ "index.number_of_replicas": "3", "index.refresh_interval": "5s", "index.uuid": "x" });
        let fit = plan(json!({ "number_of_replicas": 1 })).fit_for_readers(seen.as_object().unwrap()).unwrap();
        assert_eq!(fit, json!({ "index.number_of_replicas": 1, "index.refresh_interval": "5s", "index.auto_expand_replicas": null }));
    }
}
