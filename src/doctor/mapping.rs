//! The mapping of an index against the collection's file. Pure.
//!
//! Elasticsearch words a mapping its own way: it leaves out what is the default and writes numbers for texts. So only what must be
//! different is told.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::line::{Line, fail, ok, warn};

/// What Elasticsearch leaves out when it shows a mapping, because it is so anyway.
const DEFAULTS: &[(&str, &str)] = &[
    ("index", "true"),
    ("doc_values", "true"),
    ("store", "false"),
    ("norms", "true"),
    ("enabled", "true"),
    ("coerce", "true"),
    ("ignore_malformed", "false"),
    ("fielddata", "false"),
    ("eager_global_ordinals", "false"),
    ("similarity", "BM25"),
    ("analyzer", "default"),
    ("type", "object"),
    ("dynamic", "strict"),
];

/// Fields by their path, each with its parameters as text.
type Fields = BTreeMap<String, BTreeMap<String, String>>;

/// May a document add fields by itself, anywhere?
pub(super) fn dynamic(mappings: &Value, index: &str) -> Line {
    let mut loose = Vec::new();
    find_dynamic(mappings, "", &mut loose);
    if mappings.get("dynamic").is_none() {
        loose.push("the whole of it".into());
    }
    match loose.first() {
        None => ok("dynamic", "no document can add a field by itself"),
        Some(first) => fail(
            "dynamic",
            format!("{first} takes fields that the mapping does not know: it then depends on which document came first"),
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
    let (wanted, found) = (fields(file), fields(actual));
    let missing: Vec<&str> = wanted.keys().filter(|path| !found.contains_key(*path)).map(String::as_str).collect();
    if !missing.is_empty() {
        return fail(
            "mapping",
            format!("the index lacks {}", listed(&missing)),
            "catchword migrate adds it; then catchword reindex --all --anew",
        );
    }
    let other: Vec<String> = wanted
        .iter()
        .filter_map(|(path, wanted)| {
            let difference = difference(wanted, found.get(path)?)?;
            Some(format!("{path} ({difference})"))
        })
        .collect();
    if !other.is_empty() {
        let other: Vec<&str> = other.iter().map(String::as_str).collect();
        return fail(
            "mapping",
            format!("the file says otherwise than the index for {}", listed(&other)),
            "correct the file, or make a new index by it: catchword rebuild",
        );
    }
    let extra: Vec<&str> = found.keys().filter(|path| !wanted.contains_key(*path)).map(String::as_str).collect();
    match extra.as_slice() {
        [] => ok("mapping", format!("as the file says: {} fields", wanted.len())),
        extra => warn(
            "mapping",
            format!("the index has {}, which the file does not", listed(extra)),
            "write it into the file, so that a new index has it too",
        ),
    }
}

/// The first parameter that must be different.
fn difference(wanted: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Option<String> {
    let is_default = |name: &str, value: &str| DEFAULTS.contains(&(name, value));
    for (name, value) in wanted {
        match found.get(name) {
            Some(there) if there == value => {}
            None if is_default(name, value) => {}
            there => return Some(format!("{name} is {}, not {value}", there.map_or("not set", String::as_str))),
        }
    }
    let extra = found.iter().find(|(name, value)| !wanted.contains_key(*name) && !is_default(name, value));
    extra.map(|(name, value)| format!("{name} is {value}, not set in the file"))
}

fn fields(mappings: &Value) -> Fields {
    let mut all = Fields::new();
    if let Some(mappings) = mappings.as_object() {
        collect(mappings, "", &mut all);
    }
    all
}

fn collect(mapping: &Map<String, Value>, path: &str, all: &mut Fields) {
    for below in ["properties", "fields"] {
        for (name, field) in mapping.get(below).and_then(Value::as_object).into_iter().flatten() {
            let Some(field) = field.as_object() else { continue };
            let path = joined(path, name);
            let parameters = field.iter().filter(|(name, _)| !matches!(name.as_str(), "properties" | "fields" | "meta"));
            all.insert(path.clone(), parameters.map(|(name, value)| (name.clone(), text(value))).collect());
            collect(field, &path, all);
        }
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `true` and `"true"` are the same to Elasticsearch, and so are 256 and `"256"`.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(5);
    let shown = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::super::line::Level;
    use super::*;
    use serde_json::json;

    fn level(file: Value, actual: Value) -> Level {
        differs(&json!({ "properties": file }), &json!({ "dynamic": "strict", "properties": actual })).level
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
        let line = differs(&json!({ "properties": file }), &json!({ "properties": shown }));
        assert_eq!(line.level, Level::Ok, "{line:?}");
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
