use uuid::Uuid;

use super::seen::{Seen, behind};
use crate::elastic::{Elastic, Error, Target};

impl Elastic {
    /// Checks that this index is there, is this installation's, and can be written to and read as it must.
    ///
    /// A worker asks before its first write and at each tick: an index can be dropped, restored or swapped under it.
    /// `targets` are all of its collection's: readers must see one of them.
    pub async fn belongs(&self, target: &Target, targets: &[Target], alias: &str, installation: Uuid) -> Result<(), Error> {
        let seen = self.see(&[alias, target.index(), &target.write_alias()]).await?;
        check(target, targets, alias, installation, &seen)
    }
}

fn check(target: &Target, targets: &[Target], alias: &str, installation: Uuid, seen: &Seen) -> Result<(), Error> {
    let index = target.index();
    let found = seen.get(index).ok_or_else(|| Error::NoIndex { index: index.to_owned() })?;
    found.check_owner(index, installation)?;

    let missing = |alias: &str| Error::NoAlias { alias: alias.to_owned(), index: index.to_owned() };
    let write_alias = target.write_alias();
    match behind(seen, &write_alias)? {
        Some((written, found)) if written == index && found.takes_writes(&write_alias) => {}
        _ => return Err(missing(&write_alias)),
    }
    // readers may still see another index while this one is being rebuilt
    let (read, index) = behind(seen, alias)?.ok_or_else(|| missing(alias))?;
    if !targets.iter().any(|target| target.index() == read) {
        return Err(Error::AliasElsewhere { alias: alias.to_owned(), index: read.to_owned(), kept: target.index().to_owned() });
    }
    if !index.hides_tombstones(alias) {
        return Err(Error::NoFilter { alias: alias.to_owned(), index: read.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::elastic::index::plan::readers_alias;

    fn found(seen: Value) -> Result<(), Error> {
        let target = Target::new("annotation-000001");
        let targets = [Target::new("annotation-000000"), target.clone()];
        check(&target, &targets, "annotation", Uuid::from_u128(7), &serde_json::from_value(seen).unwrap())
    }

    fn ours(aliases: Value) -> Value {
        json!({ "aliases": aliases, "mappings": { "_meta": { "catchword": { "installation": Uuid::from_u128(7) } } } })
    }

    #[test]
    fn a_whole_index_belongs_also_while_readers_see_its_predecessor() {
        let write = json!({ "annotation-000001-write": {} });
        let whole = ours(json!({ "annotation": readers_alias(), "annotation-000001-write": { "is_write_index": true } }));
        assert!(found(json!({ "annotation-000001": whole })).is_ok());
        let before = ours(json!({ "annotation": readers_alias() }));
        assert!(found(json!({ "annotation-000000": before, "annotation-000001": ours(write) })).is_ok());
    }

    #[test]
    fn what_is_missing_is_named() {
        let write = json!({ "annotation-000001-write": {} });
        assert!(matches!(found(json!({})), Err(Error::NoIndex { .. })));
        assert!(matches!(found(json!({ "annotation-000001": { "aliases": write } })), Err(Error::NotOurs { .. })));
        assert!(matches!(found(json!({ "annotation-000001": ours(write) })), Err(Error::NoAlias { alias, .. }) if alias == "annotation"));
        let read = json!({ "annotation": readers_alias() });
        assert!(
            matches!(found(json!({ "annotation-000001": ours(read) })), Err(Error::NoAlias { alias, .. }) if alias == "annotation-000001-write")
        );
        let bare = json!({ "annotation": {}, "annotation-000001-write": {} });
        assert!(matches!(found(json!({ "annotation-000001": ours(bare) })), Err(Error::NoFilter { .. })));
        let shut = json!({ "annotation": readers_alias(), "annotation-000001-write": { "is_write_index": false } });
        assert!(matches!(found(json!({ "annotation-000001": ours(shut) })), Err(Error::NoAlias { .. })));
    }

    #[test]
    fn an_alias_that_leads_to_what_nobody_keeps_in_step_is_noticed() {
        let kept = ours(json!({ "annotation-000001-write": {} }));
        let stray = ours(json!({ "annotation": readers_alias() }));
        let error = found(json!({ "annotation-000001": kept, "annotation-000009": stray })).unwrap_err();
        assert!(matches!(&error, Error::AliasElsewhere { index, .. } if index == "annotation-000009"), "{error}");
    }

    #[test]
    fn an_index_of_another_installation_is_refused() {
        let theirs = json!({ "mappings": { "_meta": { "catchword": { "installation": Uuid::from_u128(8) } } } });
        let error = found(json!({ "annotation-000001": theirs })).unwrap_err();
        assert!(matches!(error, Error::OtherInstallation { .. }));
        assert!(error.to_string().contains("check ELASTICSEARCH_URL"), "{error}");
    }
}
