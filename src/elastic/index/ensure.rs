use crate::elastic::client::Method;
use bytes::Bytes;
use serde_json::{Value, json};

use super::plan::{IndexPlan, readers_alias};
use super::seen::{Seen, behind};
use crate::elastic::{Answer, Elastic, Error, Target, percent};

/// An index that is there and ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensured {
    /// The index to write to: the one that readers see.
    pub target: Target,
    /// What had to be done for it.
    pub done: Done,
}

/// What had to be done to have the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It was created.
    Created,
    /// Nothing: it was there.
    Existing,
    /// It was there, and these aliases were put back.
    PutBack(Vec<String>),
}

impl Elastic {
    /// Refuses what `ensure_index` would refuse, and makes nothing.
    pub async fn check_index(&self, plan: &IndexPlan, targets: &[Target]) -> Result<(), Error> {
        next_step(plan, targets, &self.see_all(plan, targets).await?)?;
        self.check_search_alias(plan).await
    }

    /// Makes sure that the collection has its index with both aliases: the one that readers see of those that Postgres has recorded, or
    /// the first one, if it has recorded none. Doing it again changes nothing.
    pub async fn ensure_index(&self, plan: &IndexPlan, targets: &[Target]) -> Result<Ensured, Error> {
        let mut next = next_step(plan, targets, &self.see_all(plan, targets).await?)?;
        if let Step::Create(target) = next {
            if self.create(target.index(), &plan.create_request_for(&target)?).await? {
                return Ok(Ensured { target, done: Done::Created });
            }
            // somebody was faster: what is there now is looked at like any other
            next = next_step(plan, targets, &self.see_all(plan, targets).await?)?;
        }
        match next {
            Step::Create(target) => Err(Error::NoIndex { index: target.index().to_owned() }),
            Step::Keep { target, missing, .. } if missing.is_empty() => Ok(Ensured { target, done: Done::Existing }),
            Step::Keep { target, missing, moved_to } => {
                self.add_aliases(&target, &missing, moved_to.map(|index| (plan.alias.as_str(), index))).await?;
                let names = missing.into_iter().map(|(alias, _)| alias).collect();
                Ok(Ensured { target, done: Done::PutBack(names) })
            }
        }
    }

    async fn see_all(&self, plan: &IndexPlan, targets: &[Target]) -> Result<Seen, Error> {
        let first = plan.target();
        let mut names = vec![plan.alias.clone()];
        for target in targets.iter().chain([&first]) {
            names.extend([target.index().to_owned(), target.write_alias()]);
        }
        self.see(&names.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// Creates an index; false if it was there already.
    pub(super) async fn create(&self, index: &str, request: &Value) -> Result<bool, Error> {
        let doing = format!("create index {index}");
        let path = format!("/{}", percent::encode(index));
        // an index whose shards are not up yet is an index; its writes will say 503
        let query = [("timeout", "10s")];
        let body = Bytes::from(request.to_string());
        match self.ask(&doing, Method::Put, &path, &query, Some(body)).await {
            Ok(_) => Ok(true),
            Err(Error::Request { answer: Answer::Refused(text), .. }) if text.starts_with("resource_already_exists_exception") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// In one request, also where the readers' alias is taken from another index: readers never see none.
    async fn add_aliases(&self, target: &Target, aliases: &[(String, Value)], moved: Option<(&str, String)>) -> Result<(), Error> {
        let added = aliases.iter().map(|(alias, options)| {
            let mut add = options.clone();
            add["index"] = target.index().into();
            add["alias"] = alias.as_str().into();
            json!({ "add": add })
        });
        let removed = moved.map(|(alias, index)| json!({ "remove": { "index": index, "alias": alias } }));
        let actions: Vec<Value> = removed.into_iter().chain(added).collect();
        let body = Bytes::from(json!({ "actions": actions }).to_string());
        self.ask(&format!("put back the aliases of {target}"), Method::Post, "/_aliases", &[], Some(body)).await?;
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
enum Step {
    Create(Target),
    /// The index is there; these aliases are to be put back.
    Keep {
        target: Target,
        missing: Vec<(String, Value)>,
        /// Where somebody moved the readers' alias.
        moved_to: Option<String>,
    },
}

/// What to do, given what Postgres has recorded and what is there. The index that readers see is the collection's index, also after a
/// rebuild; when they see none, or one that nobody keeps in step, it is the recorded one, and without a record the first one.
fn next_step(plan: &IndexPlan, targets: &[Target], seen: &Seen) -> Result<Step, Error> {
    let recorded = targets.first().cloned().unwrap_or_else(|| plan.target());
    let read = behind(seen, &plan.alias)?;
    let is_kept = |name: &str| targets.is_empty() || targets.iter().any(|target| target.index() == name);
    let (target, moved_to) = match read {
        None => (recorded, None),
        Some((name, _)) if is_kept(name) => (Target::new(name), None),
        Some((name, index)) => {
            index.check_owner(name, plan.installation)?;
            index.check_collection(name, &plan.collection)?;
            if !seen.contains_key(recorded.index()) {
                // readers would see an empty one
                return Err(Error::AliasElsewhere { alias: plan.alias.clone(), index: name.to_owned(), kept: recorded.index().to_owned() });
            }
            (recorded, Some(name.to_owned()))
        }
    };
    let written = behind(seen, &target.write_alias())?;
    if let Some((other, _)) = written.filter(|(name, _)| *name != target.index()) {
        let indices = format!("{other} instead of {target}");
        return Err(Error::AliasOfMany { alias: target.write_alias(), indices });
    }
    let Some(index) = seen.get(target.index()) else {
        return Ok(Step::Create(target));
    };
    index.check_owner(target.index(), plan.installation)?;
    index.check_collection(target.index(), &plan.collection)?;

    let mut missing = Vec::new();
    if !index.hides_tombstones(&plan.alias) {
        missing.push((plan.alias.clone(), readers_alias()));
    }
    if !index.takes_writes(&target.write_alias()) {
        missing.push((target.write_alias(), json!({ "is_write_index": true })));
    }
    Ok(Step::Keep { target, missing, moved_to })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn plan() -> IndexPlan {
        IndexPlan {
            alias: "annotation".to_owned(),
            search_alias: None,
            mapping: json!({}),
            installation: Uuid::from_u128(7),
            collection: "annotations".to_owned(),
        }
    }

    fn ours(aliases: Value) -> Value {
        let owner = json!({ "installation": Uuid::from_u128(7), "collection": "annotations" });
        json!({ "aliases": aliases, "mappings": { "_meta": { "catchword": owner } } })
    }

    fn next(seen: Value) -> Result<Step, Error> {
        next_step(&plan(), &[], &serde_json::from_value(seen).unwrap())
    }

    fn next_of(targets: &[&str], seen: Value) -> Result<Step, Error> {
        let targets: Vec<Target> = targets.iter().copied().map(Target::new).collect();
        next_step(&plan(), &targets, &serde_json::from_value(seen).unwrap())
    }

    fn keep(index: &str, put_back: &[&str]) -> Step {
        let options = |alias: &str| {
            if alias == "annotation" { readers_alias() } else { json!({ "is_write_index": true }) }
        };
        let missing = put_back.iter().map(|alias| ((*alias).to_owned(), options(alias))).collect();
        Step::Keep { target: Target::new(index), missing, moved_to: None }
    }

    #[test]
    fn nothing_there_is_created_and_what_is_whole_is_kept() {
        assert_eq!(next(json!({})).unwrap(), Step::Create(Target::new("annotation-000001")));
        let whole = ours(json!({ "annotation": readers_alias(), "annotation-000001-write": { "is_write_index": true } }));
        assert_eq!(next(json!({ "annotation-000001": whole })).unwrap(), keep("annotation-000001", &[]));
    }

    #[test]
    fn an_alias_that_is_missing_or_wrong_is_put_back() {
        for (aliases, put_back) in [
            (json!({}), &["annotation", "annotation-000001-write"][..]),
            (json!({ "annotation": readers_alias() }), &["annotation-000001-write"]),
            (json!({ "annotation": {}, "annotation-000001-write": {} }), &["annotation"]),
            (
                json!({ "annotation": readers_alias(), "annotation-000001-write": { "is_write_index": false } }),
                &["annotation-000001-write"],
            ),
        ] {
            assert_eq!(next(json!({ "annotation-000001": ours(aliases) })).unwrap(), keep("annotation-000001", put_back));
        }
    }

    #[test]
    fn after_a_rebuild_the_index_that_readers_see_is_kept() {
        let new = ours(json!({ "annotation": readers_alias(), "annotation-000002-write": {} }));
        let old = ours(json!({ "annotation-000001-write": {} }));
        let both = json!({ "annotation-000001": old, "annotation-000002": new.clone() });
        assert_eq!(next(both).unwrap(), keep("annotation-000002", &[]));
        assert_eq!(next(json!({ "annotation-000002": new })).unwrap(), keep("annotation-000002", &[]));
    }

    #[test]
    fn the_recorded_index_gets_its_alias_back_and_is_made_again_under_its_own_name() {
        let bare = ours(json!({ "annotation-000004-write": {} }));
        let put_back = keep("annotation-000004", &["annotation"]);
        assert_eq!(next_of(&["annotation-000004"], json!({ "annotation-000004": bare.clone() })).unwrap(), put_back);
        assert_eq!(next_of(&["annotation-000004"], json!({})).unwrap(), Step::Create(Target::new("annotation-000004")));

        let stray = ours(json!({ "annotation": readers_alias(), "annotation-000001-write": {} }));
        let moved = next_of(&["annotation-000004"], json!({ "annotation-000001": stray.clone(), "annotation-000004": bare })).unwrap();
        assert!(
            matches!(&moved, Step::Keep { target, missing, moved_to } if target.index() == "annotation-000004"
            && missing.len() == 1 && moved_to.as_deref() == Some("annotation-000001")),
            "{moved:?}"
        );
        let gone = next_of(&["annotation-000004"], json!({ "annotation-000001": stray }));
        assert!(matches!(gone, Err(Error::AliasElsewhere { .. })), "readers would see an empty index");
    }

    #[test]
    fn what_is_not_ours_is_refused_by_name() {
        assert!(matches!(next(json!({ "annotation": {} })), Err(Error::NameTaken { .. })));
        assert!(matches!(next(json!({ "annotation-000001-write": {} })), Err(Error::NameTaken { .. })));
        assert!(matches!(next(json!({ "annotation-000001": {} })), Err(Error::NotOurs { .. })));
        assert!(
            matches!(next(json!({ "legacy": { "aliases": { "annotation": {} } } })), Err(Error::NotOurs { index, .. }) if index == "legacy")
        );
        let mut staging = ours(json!({}));
        staging["mappings"]["_meta"]["catchword"]["installation"] = json!(Uuid::from_u128(8));
        assert!(matches!(next(json!({ "annotation-000001": staging })), Err(Error::OtherInstallation { .. })));
        let mut other = ours(json!({}));
        other["mappings"]["_meta"]["catchword"]["collection"] = json!("documents");
        assert!(matches!(next(json!({ "annotation-000001": other })), Err(Error::OtherCollection { theirs, .. }) if theirs == "documents"));
        let alias = json!({ "annotation": readers_alias() });
        let many = json!({ "annotation-000001": ours(alias.clone()), "annotation-000002": ours(alias) });
        assert!(matches!(next(many), Err(Error::AliasOfMany { .. })));
        let elsewhere = json!({ "legacy": { "aliases": { "annotation-000001-write": {} } } });
        assert!(matches!(next(elsewhere), Err(Error::AliasOfMany { .. })));
    }
}
