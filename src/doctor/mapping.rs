//! The mapping of an index against the collection's file. Pure.

use serde_json::Value;

use super::line::{Line, fail, ok, warn};
use crate::elastic::Difference;

/// May a document add fields that the mapping lacks, anywhere?
pub(super) fn dynamic(mappings: &Value, index: &str) -> Line {
    let mut loose = Vec::new();
    find_dynamic(mappings, "", &mut loose);
    if mappings.get("dynamic").is_none() {
        loose.push("the whole of it".into());
    }
    match loose.first() {
        None => ok("dynamic", "no document can add a field that the mapping lacks"),
        Some(first) => fail(
            "dynamic",
            format!("{first} accepts fields that the mapping lacks: then the mapping depends on which document came first"),
            format!("PUT {index}/_mapping {{\"dynamic\": \"strict\"}}"),
        ),
    }
}

fn find_dynamic(mapping: &Value, path: &str, loose: &mut Vec<String>) {
    if let Some(dynamic) = mapping.get("dynamic").map(text)
        && !matches!(dynamic.as_str(), "strict" | "false")
    {
        loose.push(if path.is_empty() { "the whole of it".into() } else { path.to_owned() });
    }
    for (name, field) in mapping.get("properties").and_then(Value::as_object).into_iter().flatten() {
        find_dynamic(field, &joined(path, name), loose);
    }
}

/// What the file says and the index does not have, and the other way round.
pub(super) fn differs(file: &Value, actual: &Value) -> Line {
    let Difference { added, changed, extra, .. } = Difference::of_mappings(file, actual);
    if !added.is_empty() {
        fail("mapping", format!("the index lacks {}", listed(&added)), "catchword migrate adds it; then catchword reindex --all --rewrite")
    } else if !changed.is_empty() {
        fail(
            "mapping",
            format!("the file and the index differ: {}", listed(&changed)),
            "correct the file, or make a new index from it: catchword rebuild",
        )
    } else if !extra.is_empty() {
        warn(
            "mapping",
            format!("the index has {}, which the file does not", listed(&extra)),
            "write it into the file, so that a new index has it too",
        )
    } else {
        ok("mapping", "as the file says")
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `true` and `"true"` are the same to Elasticsearch, and so are 256 and `"256"`.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(5);
    let shown = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;
    use serde_json::json;

    fn level(file: Value, actual: Value) -> Level {
        differs(&json!({ "dynamic": "strict", "properties": file }), &json!({ "dynamic": "strict", "properties": actual })).level
    }

    #[test]
    fn what_elasticsearch_words_its_own_way_is_the_same() {
        let file = json!({
            "a": { "type": "keyword", "index": true, "ignore_above": "256" },
            "b": { "type": "text", "norms": "true", "fields": { "raw": { "type": "keyword" } } },
            "o": { "type": "object", "dynamic": false, "properties": { "x": { "type": "long", "coerce": true } } },
        });
        let shown = json!({
            "a": { "type": "keyword", "ignore_above": 256 },
            "b": { "type": "text", "fields": { "raw": { "type": "keyword" } } },
            "o": { "dynamic": "false", "properties": { "x": { "type": "long" } } },
        });
        assert_eq!(level(file, shown), Level::Ok);
    }

    #[test]
    fn missing_fields_other_types_and_other_parameters_differ() {
        assert_eq!(level(json!({ "a": { "type": "keyword" } }), json!({})), Level::Fail);
        assert_eq!(level(json!({ "a": { "type": "keyword" } }), json!({ "a": { "type": "text" } })), Level::Fail);
        assert_eq!(level(json!({ "a": { "type": "text", "analyzer": "x" } }), json!({ "a": { "type": "text" } })), Level::Fail);
        assert_eq!(level(json!({ "a": { "type": "text" } }), json!({ "a": { "type": "text", "analyzer": "x" } })), Level::Fail);
        assert_eq!(level(json!({ "a": { "type": "keyword" } }), json!({ "a": { "type": "keyword", "index": false } })), Level::Fail);
        let deep = json!({ "o": { "properties": { "x": { "type": "long" } } } });
        assert_eq!(level(deep, json!({ "o": { "properties": { "x": { "type": "date" } } } })), Level::Fail);
        assert_eq!(level(json!({}), json!({ "a": { "type": "keyword" } })), Level::Warn);
    }

    #[test]
    fn a_field_that_takes_whatever_comes_is_found_at_any_depth() {
        let level = |mappings: Value| dynamic(&mappings, "i").level;
        assert_eq!(level(json!({ "dynamic": "strict", "properties": { "o": { "dynamic": "false" } } })), Level::Ok);
        assert_eq!(level(json!({ "dynamic": "true" })), Level::Fail);
        assert_eq!(level(json!({ "properties": {} })), Level::Fail);
        assert_eq!(level(json!({ "dynamic": "false", "properties": { "o": { "dynamic": true } } })), Level::Fail);
    }
}
