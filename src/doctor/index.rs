//! An index: whose it is, its aliases, its mapping, how safely it keeps what it took.

use uuid::Uuid;

use super::elastic::in_time;
use super::line::{Line, fail, ok, warn};
use super::{elastic, mapping};
use crate::collection::Collection;
use crate::config;
use crate::context::{Context, index_plan};
use crate::drift::{Drift, drift};
use crate::elastic::{Actual, Answer, Body, Difference, Error, Refresh, Target, Write};

/// What helps where Elasticsearch did not say how an index is.
const MAY_LOOK: &str = "the worker's credentials need view_index_metadata";

pub(super) async fn doctor_index(context: &Context, collection: &Collection, installation: Uuid) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Err(error) = collection.check_targets() {
        lines.push(fail("names", error.what(), error.remedy().unwrap_or_default()));
    }
    let config = context.config.served().find(|config| config.name == collection.name);
    if collection.targets.is_empty() {
        lines.push(fail("aliases", "there is no index yet", "run: catchword migrate"));
    }
    if let (Some(alias), Some(readers)) = (&collection.search_alias, collection.readers_target()) {
        let shown = context.elastic.is_shown_in_search_alias(alias, readers, &collection.name, installation);
        lines.push(search_alias(alias, in_time("look at the search alias", shown).await));
    }
    for target in &collection.targets {
        let owned = context.elastic.belongs(target, &collection.targets, &collection.alias, installation);
        let owned = in_time("ask whose index it is", owned).await;
        let is_gone = matches!(owned, Err(Error::NoIndex { .. }));
        lines.push(aliases(target, owned));
        if is_gone {
            continue;
        }
        match in_time("look at the index", context.elastic.actual(target.index())).await {
            // one that a rebuild keeps beside it has the mapping of its own time
            Ok(actual) => {
                lines.extend(judge(context, config.filter(|_| Some(target) == collection.readers_target()), target, &actual, installation))
            }
            Err(error) => lines.push(fail("settings", error.to_string(), MAY_LOOK)),
        }
    }
    if let Some(config) = config
        && let Ok(Ok(drift)) = tokio::time::timeout(elastic::PATIENCE, drift(context, config)).await
    {
        lines.push(filled(&drift));
    }
    if let Some(target) = collection.readers_target() {
        lines.extend(offers(context, target).await);
    }
    lines.push(try_missing_alias(context, collection).await);
    lines
}

/// What not every server offers. Whatever needs it does without it, and says so.
async fn offers(context: &Context, target: &Target) -> Vec<Line> {
    let room = in_time("read how full the disks are", context.elastic.room_beside(target)).await;
    let shards = in_time("ask for shards", context.elastic.shards_of(target, &["catchword".to_owned()])).await;
    let told = |error: Option<Error>| error.filter(Error::is_not_offered);
    let room = match told(room.err()) {
        None => ok("room", "before a rebuild it is seen whether a second copy fits on the disks"),
        Some(error) => ok("room", format!("the server does not tell how full its disks are, and a rebuild does not check it ({error})")),
    };
    let shards = match told(shards.err()) {
        None => ok("shards", "each shard has a sentinel, which shows if it loses writes"),
        Some(error) => {
            ok("shards", format!("the server does not tell which shard a document is in: sentinels are spread by chance ({error})"))
        }
    };
    vec![room, shards]
}

fn judge(context: &Context, config: Option<&config::Collection>, target: &Target, actual: &Actual, installation: Uuid) -> Vec<Line> {
    let mut lines = settings(target, actual);
    lines.push(mapping::dynamic(&actual.mappings, target.index()));
    if let Some(Ok(plan)) = config.map(|config| index_plan(context, config, installation))
        && let Ok(request) = plan.create_request()
    {
        let own = actual.settings.get("index").unwrap_or(&serde_json::Value::Null);
        lines.extend(Difference::of_settings(&plan, own).ok().map(|other| other_settings(target, &other)));
        lines.push(mapping::differs(request.get("mappings").unwrap_or(&serde_json::Value::Null), &actual.mappings));
    }
    lines
}

/// A setting that the file has otherwise: changed in the file and not applied yet, or in the index by hand.
fn other_settings(target: &Target, other: &[(String, serde_json::Value, String)]) -> Line {
    if other.is_empty() {
        return ok("settings", "as the file says");
    }
    let words: Vec<String> = other.iter().map(|(name, file, live)| format!("{name} is {live}, and the file says {file}")).collect();
    let put: serde_json::Map<_, _> = other.iter().map(|(name, file, _)| (name.clone(), file.clone())).collect();
    warn(
        "settings",
        words.join("; "),
        format!(
            "if the file changed: catchword migrate, or a rebuild as it says; if the index did: PUT {}/_settings {}, or correct the file",
            target.index(),
            serde_json::Value::from(put)
        ),
    )
}

/// Sends what a worker sends, to an alias that is not there: it must be refused, and must not make an index.
async fn try_missing_alias(context: &Context, collection: &Collection) -> Line {
    let nowhere = Target::new(format!("{}-doctor-{}", collection.alias, Uuid::new_v4().simple()));
    let write = Write { key: "doctor", version: 1, body: Body::Tombstone };
    let answers = context.elastic.bulk(&nowhere, &[write], Refresh::No, elastic::PATIENCE).await;
    judge_missing_alias(&nowhere, answers.first())
}

/// Was the index filled by the view as it is?
fn filled(drift: &Drift) -> Line {
    match drift.view_changed {
        false => ok("filled", "the documents were built by the view as it is now"),
        true => warn(
            "filled",
            "the view or touches changed since the documents were built",
            format!("catchword reindex {} --all --rewrite", drift.collection),
        ),
    }
}

fn aliases(target: &Target, owned: Result<(), Error>) -> Line {
    match owned {
        Ok(()) => ok("aliases", format!("{} is ours, has both aliases, and readers do not see tombstones", target.index())),
        Err(error) => fail("aliases", error.what(), error.remedy().unwrap_or_else(|| MAY_LOOK.into())),
    }
}

fn search_alias(alias: &str, shown: Result<(), Error>) -> Line {
    match shown {
        Ok(()) => ok("search_alias", format!("it is found under {alias}, without tombstones")),
        Err(error) => fail("search_alias", error.what(), error.remedy().unwrap_or_else(|| MAY_LOOK.into())),
    }
}

fn judge_missing_alias(nowhere: &Target, answer: Option<&Answer>) -> Line {
    match answer {
        Some(Answer::Blocked(_)) => ok("require_alias", "a write to a missing alias is refused and makes no index"),
        Some(Answer::Applied) => fail(
            "require_alias",
            format!("a write to a missing alias made the index {}", nowhere.write_alias()),
            "remove that index, and find the proxy in between: require_alias does not reach elasticsearch",
        ),
        other => {
            let said = other.map_or("nothing".into(), ToString::to_string);
            warn("require_alias", format!("it could not be tried: {said}"), "the worker's credentials need write on INDEX*")
        }
    }
}

fn settings(target: &Target, actual: &Actual) -> Vec<Line> {
    let setting = |path: &[&str]| actual.setting(path);
    let index = target.index();
    let durability = match setting(&["translog", "durability"]).map(|found| found.to_lowercase()).as_deref() {
        Some("async") => fail(
            "translog",
            "what it confirms is on disk only seconds later: a crash can lose documents whose jobs are settled",
            format!("PUT {index}/_settings {{\"index.translog.durability\": \"request\"}}, then catchword reindex --all"),
        ),
        _ => ok("translog", "what it confirms is on disk"),
    };
    let replicas = match setting(&["number_of_replicas"]).as_deref() {
        Some("0") => warn(
            "replicas",
            "there is only one copy of each document: if its disk fails, the index is gone until it is filled again",
            format!("on two nodes or more: PUT {index}/_settings {{\"index.number_of_replicas\": 1}}"),
        ),
        Some(found) => ok("replicas", format!("{found} for each document")),
        None => ok("replicas", "the server does not tell how many copies there are of a document"),
    };
    let blocks: Vec<&str> = ["read_only", "read_only_allow_delete", "write", "read", "metadata"]
        .into_iter()
        .filter(|block| setting(&["blocks", block]).as_deref() == Some("true"))
        .collect();
    let writable = match blocks.as_slice() {
        [] => ok("writable", "no block refuses writes"),
        blocks => fail(
            "writable",
            format!("it has the block {}", blocks.join(", ")),
            format!("free disk space if that was the reason, then PUT {index}/_settings {{\"index.blocks.{}\": null}}", blocks[0]),
        ),
    };
    let pipelines: Vec<&str> =
        ["default_pipeline", "final_pipeline"].into_iter().filter(|name| setting(&[name]).is_some_and(|found| found != "_none")).collect();
    let unchanged = match pipelines.as_slice() {
        [] => ok("pipelines", "documents are kept as they are sent"),
        pipelines => fail(
            "pipelines",
            format!("{} changes documents on their way: equal versions no longer mean equal documents", pipelines.join(" and ")),
            format!("PUT {index}/_settings {{\"index.{}\": \"_none\"}}, then catchword reindex --all --rewrite", pipelines[0]),
        ),
    };
    vec![durability, replicas, writable, unchanged]
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_that_lose_or_change_documents_are_found() {
        let target = Target::new("note-000001");
        let found = |own: serde_json::Value| {
            let defaults = json!({ "index": { "translog": { "durability": "REQUEST" } } });
            let actual = Actual { settings: json!({ "index": own }), defaults, ..Actual::default() };
            let bad = settings(&target, &actual).into_iter().filter(|line| line.level != Level::Ok);
            bad.map(|line| (line.what, line.level)).collect::<Vec<_>>()
        };
        assert_eq!(found(json!({ "number_of_replicas": "1", "default_pipeline": "_none" })), []);
        assert_eq!(found(json!({ "number_of_replicas": "0" })), [("replicas", Level::Warn)]);
        assert_eq!(found(json!({ "translog": { "durability": "ASYNC" } })), [("translog", Level::Fail)]);
        assert_eq!(found(json!({ "blocks": { "write": "true" } })), [("writable", Level::Fail)]);
        assert_eq!(found(json!({ "final_pipeline": "stamp" })), [("pipelines", Level::Fail)]);
    }

    #[test]
    fn a_missing_alias_must_be_refused() {
        let level = |answer: Option<&Answer>| judge_missing_alias(&Target::new("x"), answer).level;
        assert_eq!(level(Some(&Answer::Blocked("no alias".into()))), Level::Ok);
        assert_eq!(level(Some(&Answer::Applied)), Level::Fail);
        assert_eq!(level(Some(&Answer::Denied("403".into()))), Level::Warn);
        assert_eq!(level(None), Level::Warn);
    }
}
