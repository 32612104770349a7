//! An alias that readers search over several collections. It is on the index of each that its own readers see, with the same filter.

use bytes::Bytes;
use serde_json::{Value, json};
use uuid::Uuid;

use super::plan::{IndexPlan, readers_alias};
use super::seen::Seen;
use crate::elastic::client::Method;
use crate::elastic::{Elastic, Error, Target};

/// What had to be done so that a collection is found under its search alias, and under no former one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The alias that was put on its index.
    pub added: Option<String>,
    /// Aliases that were taken off, each from an index.
    pub removed: Vec<(String, String)>,
}

impl Elastic {
    /// Refuses a search alias whose name is somebody else's.
    pub async fn check_search_alias(&self, plan: &IndexPlan) -> Result<(), Error> {
        match &plan.search_alias {
            Some(alias) => check_free(alias, plan.installation, &self.see(&[alias]).await?),
            None => Ok(()),
        }
    }

    /// Makes sure that the index that readers see is found under the search alias, that no other index of the collection is, and that
    /// the alias of before is taken off. In one request; doing it again changes nothing.
    pub async fn show_in_search_alias(
        &self,
        plan: &IndexPlan,
        former: Option<&str>,
        readers: &Target,
        targets: &[Target],
    ) -> Result<Shown, Error> {
        if plan.search_alias.is_none() && former.is_none() {
            return Ok(Shown::default());
        }
        let wanted = plan.search_alias.as_deref();
        let names = wanted.into_iter().chain([readers.index()]).chain(targets.iter().map(Target::index));
        let seen = self.see(&names.collect::<Vec<_>>()).await?;
        if let Some(alias) = wanted {
            check_free(alias, plan.installation, &seen)?;
        }
        let shown = to_do(plan, former, readers, &seen);
        self.change_search_aliases(&shown, readers).await?;
        Ok(shown)
    }

    /// Takes a search alias off these indices, as far as they are there and ours.
    pub async fn hide_from_search_alias(&self, alias: &str, targets: &[Target], installation: Uuid) -> Result<Shown, Error> {
        let Some(first) = targets.first() else { return Ok(Shown::default()) };
        let seen = self.see(&targets.iter().map(Target::index).collect::<Vec<_>>()).await?;
        let having = seen.iter().filter(|(name, index)| index.aliases.contains_key(alias) && index.check_owner(name, installation).is_ok());
        let removed = having.map(|(name, _)| (alias.to_owned(), name.clone())).collect();
        let shown = Shown { added: None, removed };
        self.change_search_aliases(&shown, first).await?;
        Ok(shown)
    }

    /// Checks that readers who search several collections find this one, once, and no tombstones, and nothing of somebody else's. An
    /// index that is gone is not its business.
    pub async fn is_shown_in_search_alias(&self, alias: &str, readers: &Target, collection: &str, installation: Uuid) -> Result<(), Error> {
        let seen = self.see(&[alias, readers.index()]).await?;
        check_shown(alias, readers, collection, installation, &seen)
    }

    async fn change_search_aliases(&self, shown: &Shown, readers: &Target) -> Result<(), Error> {
        let added = shown.added.iter().map(|alias| {
            let mut add = readers_alias();
            add["index"] = readers.index().into();
            add["alias"] = alias.as_str().into();
            json!({ "add": add })
        });
        let removed = shown.removed.iter().map(|(alias, index)| json!({ "remove": { "index": index, "alias": alias } }));
        let actions: Vec<Value> = removed.chain(added).collect();
        if actions.is_empty() {
            return Ok(());
        }
        let body = Bytes::from(json!({ "actions": actions }).to_string());
        self.ask(&format!("change the search alias of {readers}"), Method::Post, "/_aliases", &[], Some(body)).await?;
        Ok(())
    }
}

/// A search alias is on indices of this installation only, and is no collection's own alias.
fn check_free(alias: &str, installation: Uuid, seen: &Seen) -> Result<(), Error> {
    let taken = |problem: String| Err(Error::SearchAliasTaken { alias: alias.to_owned(), problem });
    if seen.contains_key(alias) {
        return taken("it is an index".into());
    }
    for (name, index) in seen.iter().filter(|(_, index)| index.aliases.contains_key(alias)) {
        if index.check_owner(name, installation).is_err() {
            return taken(format!("it leads to index {name}, which this installation did not make"));
        }
        let number = name.strip_prefix(alias).and_then(|rest| rest.strip_prefix('-')).unwrap_or_default();
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            return taken(format!("it is the readers' alias of index {name}"));
        }
    }
    Ok(())
}

fn to_do(plan: &IndexPlan, former: Option<&str>, readers: &Target, seen: &Seen) -> Shown {
    let wanted = plan.search_alias.as_deref();
    let former = former.filter(|former| Some(*former) != wanted);
    let mut shown = Shown::default();
    let ours = seen.iter().filter(|(name, index)| {
        index.check_owner(name, plan.installation).is_ok() && index.check_collection(name, &plan.collection).is_ok()
    });
    for (name, index) in ours {
        let is_read = name == readers.index();
        let needless = former.into_iter().chain(wanted.filter(|_| !is_read)).filter(|alias| index.aliases.contains_key(*alias));
        shown.removed.extend(needless.map(|alias| (alias.to_owned(), name.clone())));
        if let Some(alias) = wanted.filter(|alias| is_read && !index.hides_tombstones(alias)) {
            shown.added = Some(alias.to_owned());
        }
    }
    shown
}

fn check_shown(alias: &str, readers: &Target, collection: &str, installation: Uuid, seen: &Seen) -> Result<(), Error> {
    check_free(alias, installation, seen)?;
    let elsewhere = seen.iter().find(|(name, index)| {
        index.aliases.contains_key(alias) && *name != readers.index() && index.check_collection(name, collection).is_ok()
    });
    if let Some((index, _)) = elsewhere {
        return Err(Error::SearchAliasElsewhere { alias: alias.to_owned(), index: index.clone(), kept: readers.index().to_owned() });
    }
    match seen.get(readers.index()) {
        Some(index) if !index.aliases.contains_key(alias) => {
            Err(Error::NoSearchAlias { alias: alias.to_owned(), index: readers.index().to_owned() })
        }
        Some(index) if !index.hides_tombstones(alias) => {
            Err(Error::NoFilter { alias: alias.to_owned(), index: readers.index().to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(search_alias: Option<&str>) -> IndexPlan {
        IndexPlan {
            alias: "note".to_owned(),
            search_alias: search_alias.map(str::to_owned),
            mapping: json!({}),
            installation: Uuid::from_u128(7),
            collection: "note".to_owned(),
        }
    }

    fn of(collection: &str, aliases: Value) -> Value {
        let owner = json!({ "installation": Uuid::from_u128(7), "collection": collection });
        json!({ "aliases": aliases, "mappings": { "_meta": { "catchword": owner } } })
    }

    fn seen(seen: Value) -> Seen {
        serde_json::from_value(seen).unwrap()
    }

    #[test]
    fn it_is_put_on_the_readers_index_and_taken_off_all_others_of_the_collection() {
        let readers = Target::new("note-000002");
        let done = |wanted, former, found: Value| {
            let Shown { added, removed } = to_do(&plan(wanted), former, &readers, &seen(found));
            (added, removed.into_iter().map(|(alias, index)| format!("{alias} {index}")).collect::<Vec<_>>())
        };
        let all = || json!({ "all": readers_alias() });
        assert_eq!(done(Some("all"), None, json!({ "note-000002": of("note", json!({})) })), (Some("all".into()), vec![]));
        assert_eq!(done(Some("all"), Some("all"), json!({ "note-000002": of("note", all()) })), (None, vec![]));
        assert_eq!(
            done(Some("all"), Some("all"), json!({ "note-000002": of("note", json!({ "all": {} })) })),
            (Some("all".into()), vec![])
        );
        let both = json!({ "note-000001": of("note", all()), "note-000002": of("note", json!({})) });
        assert_eq!(done(Some("all"), Some("all"), both.clone()), (Some("all".into()), vec!["all note-000001".into()]));
        assert_eq!(done(None, Some("all"), both), (None, vec!["all note-000001".into()]));
        let renamed = json!({ "note-000002": of("note", all()), "page-000001": of("page", all()) });
        assert_eq!(done(Some("every"), Some("all"), renamed), (Some("every".into()), vec!["all note-000002".into()]), "another's stays");
    }

    #[test]
    fn a_name_that_is_somebody_elses_is_refused() {
        let refused = |found: Value| check_free("all", Uuid::from_u128(7), &seen(found)).err().map(|error| error.what());
        assert_eq!(refused(json!({ "note-000001": of("note", json!({ "all": readers_alias() })) })), None);
        assert_eq!(refused(json!({ "note-000001": of("note", json!({})) })), None);
        for (found, why) in [
            (json!({ "all": {} }), "it is an index"),
            (json!({ "legacy": { "aliases": { "all": {} } } }), "it leads to index legacy, which this installation did not make"),
            (json!({ "all-000003": of("old", json!({ "all": {} })) }), "it is the readers' alias of index all-000003"),
        ] {
            assert_eq!(refused(found), Some(format!("all cannot be a search alias: {why}")));
        }
    }

    #[test]
    fn what_is_wrong_with_it_is_named() {
        let readers = Target::new("note-000002");
        let found = |found: Value| check_shown("all", &readers, "note", Uuid::from_u128(7), &seen(found));
        let all = || json!({ "all": readers_alias() });
        assert!(found(json!({ "note-000002": of("note", all()), "page-000001": of("page", all()) })).is_ok());
        assert!(found(json!({})).is_ok(), "an index that is gone is told elsewhere");
        assert!(matches!(found(json!({ "note-000002": of("note", json!({})) })), Err(Error::NoSearchAlias { .. })));
        assert!(matches!(found(json!({ "note-000002": of("note", json!({ "all": {} })) })), Err(Error::NoFilter { .. })));
        let both = json!({ "note-000001": of("note", all()), "note-000002": of("note", all()) });
        assert!(matches!(found(both), Err(Error::SearchAliasElsewhere { .. })));
        let foreign = json!({ "note-000002": of("note", all()), "legacy": { "aliases": { "all": {} } } });
        assert!(matches!(found(foreign), Err(Error::SearchAliasTaken { .. })));
    }
}
