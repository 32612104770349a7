//! How an index differs from its file. Pure: the file and what Elasticsearch shows of the index in, what is to be done out.

use serde_json::{Map, Value};

use super::plan::{IndexPlan, digest, flatten};
use super::settings::is_changeable;
use crate::elastic::Error;

/// An index as Elasticsearch shows it.
#[derive(Debug, Clone, Default, serde::Deserialize)]
pub struct Live {
    #[serde(default)]
    mappings: Map<String, Value>,
    /// By their whole names.
    #[serde(default)]
    settings: Map<String, Value>,
}

/// How an index differs from its file. A field that only the index has is none: it goes with the next rebuild.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Difference {
    /// Fields that the file has and the index lacks. They can be added.
    pub added: Vec<String>,
    /// What an index that is there cannot take, in words.
    pub changed: Vec<String>,
    /// Settings that the file has otherwise, in words. They can be changed.
    pub settings: Vec<String>,
    /// Fields that only the index has.
    #[serde(skip)]
    pub extra: Vec<String>,
    /// Was the file itself another when the index was made, or last brought in line?
    #[serde(skip)]
    pub(super) other_file: bool,
    /// The part of the mappings that adds the fields.
    #[serde(skip)]
    pub(super) additions: Map<String, Value>,
    /// The settings to change, by their whole names.
    #[serde(skip)]
    pub(super) new_settings: Map<String, Value>,
}

impl Difference {
    /// Compares. The digest is asked first: while the file is the one that the index was made from, nothing else is looked at, and what an
    /// operator added by hand is no difference.
    pub fn between(plan: &IndexPlan, live: &Live) -> Result<Difference, Error> {
        let mut found = Difference::default();
        let (settings, mappings) = (plan.settings()?, plan.mappings()?);
        let recorded = live.mappings.get("_meta").and_then(|meta| meta.get("catchword")?.get("mapping")?.as_str());
        if recorded == Some(digest(&plan.mapping).as_str()) {
            return Ok(found);
        }
        found.other_file = true;
        found.mappings(mappings.as_object().unwrap_or(&NONE), &live.mappings);
        for (name, value) in other_settings(settings, &live.settings) {
            let words = format!("setting {name} is {}, was {}", shown(Some(&value)), shown(live.settings.get(&name)));
            if is_changeable(&name) {
                found.settings.push(words);
                found.new_settings.insert(name, value);
            } else {
                found.changed.push(words);
            }
        }
        Ok(found)
    }

    /// Compares settings alone, whatever the index was made from: each that the file has otherwise, with both values. `live` are an index's
    /// own, below `index`.
    pub fn of_settings(plan: &IndexPlan, live: &Value) -> Result<Vec<(String, Value, String)>, Error> {
        let mut flat = Map::new();
        flatten(live.as_object().unwrap_or(&NONE), "", &mut flat);
        let other = other_settings(plan.settings()?, &flat).into_iter();
        Ok(other.map(|(name, value)| (name.clone(), value, shown(flat.get(&name)))).collect())
    }

    /// Compares mappings alone, whatever the index was made from: what an operator changed by hand is a difference here.
    pub fn of_mappings(file: &Value, live: &Value) -> Difference {
        let mut found = Difference::default();
        found.mappings(file.as_object().unwrap_or(&NONE), live.as_object().unwrap_or(&NONE));
        found
    }

    fn mappings(&mut self, file: &Map<String, Value>, live: &Map<String, Value>) {
        self.parameters("mappings", file, live, "root");
        self.additions = self.properties("", file, live);
    }

    /// Nothing is to be done?
    pub fn is_none(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.settings.is_empty()
    }

    /// Compares the fields of an object; returns those to add.
    fn properties(&mut self, path: &str, file: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
        self.children(path, children(file, "properties"), children(live, "properties"))
    }

    fn children(&mut self, path: &str, file: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
        let mut additions = Map::new();
        self.extra.extend(live.keys().filter(|name| !file.contains_key(*name)).map(|name| format!("{path}{name}")));
        for (name, field) in file {
            let at = format!("{path}{name}");
            match (live.get(name).and_then(Value::as_object), field.as_object()) {
                (None, _) => {
                    self.added.push(at);
                    additions.insert(name.clone(), field.clone());
                }
                (Some(there), Some(field)) => {
                    let kind = field.get("type").and_then(Value::as_str).unwrap_or("object");
                    self.parameters(&at, field, there, kind);
                    let below = self.properties(&format!("{at}."), field, there);
                    let beside = self.children(&format!("{at}."), children(field, "fields"), children(there, "fields"));
                    if !beside.is_empty() {
                        // Elasticsearch wants the field itself said again, as it is
                        additions.insert(name.clone(), field.clone().into());
                    } else if !below.is_empty() {
                        let mut object = Map::from_iter([("properties".to_owned(), below.into())]);
                        object.extend(field.get("type").map(|kind| ("type".to_owned(), kind.clone())));
                        additions.insert(name.clone(), object.into());
                    }
                }
                (Some(_), None) => {}
            }
        }
        additions
    }

    /// Compares the settings of one field. Elasticsearch does not show what is as it would be anyway; of some fields it shows more than
    /// anybody wrote, and that is no difference.
    fn parameters(&mut self, at: &str, file: &Map<String, Value>, live: &Map<String, Value>, kind: &str) {
        let mut names: Vec<&String> = file.keys().chain(live.keys()).collect();
        names.sort();
        names.dedup();
        for name in names.into_iter().filter(|name| !matches!(name.as_str(), "properties" | "fields" | "_meta")) {
            let only_the_server_says_so = !file.contains_key(name) && !is_shown_as_written(kind);
            let said = |side: &Map<String, Value>| plain(side.get(name)).or_else(|| default(kind, name).map(str::to_owned));
            if !only_the_server_says_so && said(file) != said(live) && !is_part_of(file.get(name), live.get(name)) {
                self.changed.push(format!("{at}: {name} is {}, was {}", shown(file.get(name)), shown(live.get(name))));
            }
        }
    }
}

/// Of these settings, those that the index has otherwise. Pipelines are judged elsewhere.
fn other_settings(file: Map<String, Value>, live: &Map<String, Value>) -> Vec<(String, Value)> {
    let differs = |name: &String, value: &Value| !name.ends_with("_pipeline") && plain(Some(value)) != plain(live.get(name));
    file.into_iter().filter(|(name, value)| differs(name, value)).collect()
}

/// Does Elasticsearch show a field of this type as it was written? To others (vectors, completion and what plugins bring) it adds what
/// it chose itself.
fn is_shown_as_written(kind: &str) -> bool {
    const PLAIN: [&str; 27] = [
        "root",
        "object",
        "nested",
        "text",
        "keyword",
        "constant_keyword",
        "wildcard",
        "match_only_text",
        "boolean",
        "date",
        "date_nanos",
        "long",
        "integer",
        "short",
        "byte",
        "unsigned_long",
        "double",
        "float",
        "half_float",
        "scaled_float",
        "ip",
        "version",
        "binary",
        "alias",
        "flattened",
        "geo_point",
        "token_count",
    ];
    PLAIN.contains(&kind)
}

/// Is all that the file says of it so, whatever else the index says? `{"type": "hnsw"}` is a part of `{"type": "hnsw", "m": 16}`.
fn is_part_of(file: Option<&Value>, live: Option<&Value>) -> bool {
    match (file, live) {
        (Some(Value::Object(file)), Some(Value::Object(live))) => {
            file.iter().all(|(name, value)| plain(Some(value)) == plain(live.get(name)) || is_part_of(Some(value), live.get(name)))
        }
        _ => false,
    }
}

static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

fn children<'a>(field: &'a Map<String, Value>, below: &str) -> &'a Map<String, Value> {
    field.get(below).and_then(Value::as_object).unwrap_or(&NONE)
}

/// Elasticsearch takes `"true"`, `true` and `["true"]` for the same, and shows one of them.
fn plain(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(all) if all.len() == 1 => plain(all.first()),
        Value::Array(all) if all.is_empty() => None,
        other => Some(other.to_string()),
    }
}

fn shown(value: Option<&Value>) -> String {
    plain(value).unwrap_or_else(|| "not said".to_owned())
}

/// The defaults of Elasticsearch, for settings that people write out all the same. A setting that is not here counts as a change, and is reported.
fn default(kind: &str, parameter: &str) -> Option<&'static str> {
    Some(match (kind, parameter) {
        ("object", "type") => "object",
        ("keyword", "norms") | (_, "store" | "eager_global_ordinals" | "ignore_malformed" | "fielddata" | "index_phrases") => "false",
        (_, "split_queries_on_whitespace" | "include_in_parent" | "include_in_root") => "false",
        (_, "index" | "doc_values" | "norms" | "enabled" | "coerce") => "true",
        ("keyword", "index_options") => "docs",
        ("text", "index_options") => "positions",
        (_, "similarity") => "BM25",
        (_, "term_vector") => "no",
        (_, "position_increment_gap") => "100",
        ("keyword", "ignore_above") => "2147483647",
        ("date", "format") => "strict_date_optional_time||epoch_millis",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn between(file: Value, live: Value) -> Difference {
        let plan = IndexPlan {
            alias: "note".to_owned(),
            search_alias: None,
            mapping: file,
            installation: Uuid::from_u128(7),
            collection: "note".to_owned(),
        };
        Difference::between(&plan, &serde_json::from_value(live).unwrap()).unwrap()
    }

    fn file(properties: Value) -> Value {
        json!({ "mappings": { "properties": properties } })
    }

    fn live(mut properties: Value) -> Value {
        properties["catchword_deleted"] = json!({ "type": "boolean" });
        json!({ "mappings": { "dynamic": "strict", "properties": properties }, "settings": { "index.number_of_replicas": "1", "index.uuid": "x" } })
    }

    #[test]
    fn an_index_that_was_made_from_the_file_is_not_looked_at_any_further() {
        let made_from = file(json!({ "a": { "type": "text" } }));
        let mut seen = live(json!({ "a": { "type": "keyword" } }));
        seen["mappings"]["_meta"] = json!({ "catchword": { "mapping": digest(&made_from) } });
        assert!(between(made_from, seen).is_none());
    }

    #[test]
    fn what_is_written_otherwise_and_means_the_same_is_no_difference() {
        let written = json!({
            "k": { "type": "keyword", "index": "true", "norms": false, "ignore_above": 256 },
            "o": { "type": "object", "properties": { "d": { "type": "date" } } },
            "t": { "type": "text", "norms": true, "fields": { "raw": { "type": "keyword", "doc_values": true } }, "copy_to": ["k"] },
            "f": { "type": "object", "enabled": "false" },
        });
        let shown = json!({
            "k": { "type": "keyword", "ignore_above": 256 },
            "o": { "properties": { "d": { "type": "date" } } },
            "t": { "type": "text", "fields": { "raw": { "type": "keyword" } }, "copy_to": "k" },
            "f": { "type": "object", "enabled": false },
            "left_over": { "type": "long" },
        });
        let found = between(file(written), live(shown));
        assert!(found.is_none(), "{found:?}");
        assert!(found.other_file);
    }

    #[test]
    fn new_fields_are_additions_at_every_depth_and_nothing_else_is_sent() {
        let shown = json!({
            "t": { "type": "text" },
            "o": { "properties": { "a": { "type": "long" } } },
            "n": { "type": "nested", "properties": { "a": { "type": "long" } } },
        });
        let written = json!({
            "t": { "type": "text", "fields": { "raw": { "type": "keyword" } } },
            "o": { "properties": { "a": { "type": "long" }, "b": { "type": "long" } } },
            "n": { "type": "nested", "properties": { "a": { "type": "long" }, "b": { "properties": { "c": { "type": "long" } } } } },
            "new": { "type": "date" },
        });
        let found = between(file(written), live(shown));
        assert_eq!(found.changed, [""; 0]);
        assert_eq!(found.added, ["n.b", "new", "o.b", "t.raw"]);
        let additions = json!({
            "t": { "type": "text", "fields": { "raw": { "type": "keyword" } } },
            "o": { "properties": { "b": { "type": "long" } } },
            "n": { "type": "nested", "properties": { "b": { "properties": { "c": { "type": "long" } } } } },
            "new": { "type": "date" },
        });
        assert_eq!(Value::from(found.additions), additions);
    }

    #[test]
    fn what_an_index_cannot_take_is_named() {
        let shown = json!({ "a": { "type": "text" }, "k": { "type": "keyword" }, "o": { "properties": { "d": { "type": "date" } } } });
        let mut written = file(json!({
            "a": { "type": "keyword" },
            "k": { "type": "keyword", "index": false },
            "o": { "properties": { "d": { "type": "date", "format": "epoch_millis" } } },
        }));
        written["mappings"]["dynamic"] = json!(false);
        written["settings"] = json!({ "analysis": { "analyzer": { "x": { "type": "custom" } } }, "number_of_replicas": 5 });
        let changed = between(written, live(shown)).changed;
        assert_eq!(
            changed,
            [
                "mappings: dynamic is false, was strict",
                "a: type is keyword, was text",
                "k: index is false, was not said",
                "o.d: format is epoch_millis, was not said",
                "setting index.analysis.analyzer.x.type is custom, was not said",
            ]
        );
    }

    #[test]
    fn what_only_the_server_says_of_a_vector_or_a_suggester_is_no_difference() {
        let written = json!({
            "v": { "type": "dense_vector", "dims": 3, "index_options": { "type": "hnsw" } },
            "s": { "type": "completion" },
        });
        // by 9.4.3
        let shown = json!({
            "v": { "type": "dense_vector", "dims": 3, "index": true, "similarity": "cosine",
                   "index_options": { "type": "hnsw", "m": 16, "ef_construction": 100 } },
            "s": { "type": "completion", "analyzer": "simple", "preserve_separators": true, "preserve_position_increments": true, "max_input_length": 50 },
        });
        let found = between(file(written.clone()), live(shown.clone()));
        assert!(found.is_none(), "{found:?}");
        let mut other = written;
        other["v"]["similarity"] = json!("dot_product");
        other["v"]["index_options"]["type"] = json!("int8_hnsw");
        other["s"]["analyzer"] = json!("standard");
        assert_eq!(between(file(other), live(shown)).changed.len(), 3);
        // of other fields it says nothing on its own: there it was written once, and is gone from the file
        let gone = between(file(json!({ "k": { "type": "keyword" } })), live(json!({ "k": { "type": "keyword", "ignore_above": 9 } })));
        assert_eq!(gone.changed, ["k: ignore_above is not said, was 9"]);
    }

    #[test]
    fn a_setting_that_can_be_changed_is_told_from_one_that_cannot() {
        let mut written = file(json!({}));
        written["settings"] =
            json!({ "refresh_interval": "30s", "index": { "number_of_replicas": 1, "max_result_window": 5 }, "number_of_shards": 3 });
        let mut seen = live(json!({}));
        seen["settings"]["index.number_of_shards"] = json!("1");
        let found = between(written.clone(), seen);
        assert_eq!(found.changed, ["setting index.number_of_shards is 3, was 1"]);
        assert_eq!(
            found.settings,
            ["setting index.max_result_window is 5, was not said", "setting index.refresh_interval is 30s, was not said"]
        );
        assert_eq!(Value::from(found.new_settings), json!({ "index.refresh_interval": "30s", "index.max_result_window": 5 }));

        let plan = IndexPlan {
            alias: "note".into(),
            search_alias: None,
            mapping: written,
            installation: Uuid::from_u128(7),
            collection: "note".into(),
        };
        let own =
            json!({ "number_of_shards": "3", "number_of_replicas": "1", "refresh_interval": "1s", "max_result_window": "5", "uuid": "x" });
        assert_eq!(Difference::of_settings(&plan, &own).unwrap(), [("index.refresh_interval".to_owned(), json!("30s"), "1s".to_owned())]);
    }
}
