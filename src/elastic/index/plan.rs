use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::elastic::{Error, Target};

/// The field that a tombstone has, and nothing else may have.
const DELETED: &str = "catchword_deleted";

/// What a collection's index must be.
#[derive(Debug, Clone)]
pub struct IndexPlan {
    /// The alias that readers search.
    pub alias: String,
    /// The alias that readers search over several collections, if this is one of them.
    pub search_alias: Option<String>,
    /// The collection's file: `{"settings": …, "mappings": …}`.
    pub mapping: Value,
    /// Whose index it is.
    pub installation: Uuid,
    /// Which collection's index it is.
    pub collection: String,
}

impl IndexPlan {
    /// The first index of the collection.
    pub fn target(&self) -> Target {
        Target::new(format!("{}-000001", self.alias))
    }

    /// The request that creates the first index with its aliases, at once: there is no moment in which tombstones show.
    ///
    /// Pure. What would let a write change on its way, land elsewhere or hide a tombstone's mark is refused.
    pub fn create_request(&self) -> Result<Value, Error> {
        self.create_request_for(&self.target())
    }

    /// The same for an index of another name: one that a rebuild made, and that is gone.
    pub fn create_request_for(&self, target: &Target) -> Result<Value, Error> {
        let mut aliases = json!({
            &self.alias: readers_alias(),
            // without the flag a second index under this alias would make every write ambiguous
            target.write_alias(): { "is_write_index": true },
        });
        if let Some(search_alias) = &self.search_alias {
            aliases[search_alias] = readers_alias();
        }
        Ok(json!({ "settings": self.settings()?, "mappings": self.mappings()?, "aliases": aliases }))
    }

    /// The index's settings, by their whole names (`index.number_of_replicas`).
    pub(super) fn settings(&self) -> Result<Map<String, Value>, Error> {
        let file = self.file()?;
        settings(file.get("settings")).map_err(|problem| self.refuse(problem))
    }

    /// The index's mappings as they are sent: the file's, with what is catchword's own.
    pub fn mappings(&self) -> Result<Value, Error> {
        let file = self.file()?;
        self.with_ours(file.get("mappings")).map_err(|problem| self.refuse(problem))
    }

    fn file(&self) -> Result<&Map<String, Value>, Error> {
        let file = object(&self.mapping, "the file").map_err(|problem| self.refuse(problem))?;
        check_keys(file).map_err(|problem| self.refuse(problem))?;
        Ok(file)
    }

    fn refuse(&self, problem: String) -> Error {
        Error::Mapping { collection: self.collection.clone(), problem }
    }

    fn with_ours(&self, given: Option<&Value>) -> Result<Value, String> {
        let mut mappings = optional_object(given, "`mappings`")?;
        check_routing(&mappings)?;
        check_enabled(&mappings)?;
        mappings.entry("dynamic").or_insert_with(|| "strict".into());
        check_dynamic(&mappings, "mappings")?;
        if mappings.get("runtime").and_then(|fields| fields.get(DELETED)).is_some() {
            return Err(format!("`mappings.runtime.{DELETED}` is catchword's own: remove it"));
        }

        let mut properties = optional_object(mappings.get("properties"), "`mappings.properties`")?;
        if properties.insert(DELETED.to_owned(), json!({ "type": "boolean" })).is_some() {
            return Err(format!("`mappings.properties.{DELETED}` is catchword's own: remove it, catchword adds it"));
        }
        mappings.insert("properties".to_owned(), properties.into());

        let mut meta = optional_object(mappings.get("_meta"), "`mappings._meta`")?;
        let ours = json!({ "installation": self.installation, "collection": self.collection, "mapping": digest(&self.mapping) });
        if meta.insert("catchword".to_owned(), ours).is_some() {
            return Err("`mappings._meta.catchword` is catchword's own: remove it, catchword adds it".to_owned());
        }
        mappings.insert("_meta".to_owned(), meta.into());
        Ok(mappings.into())
    }
}

/// The readers' alias: everything but tombstones.
pub(super) fn readers_alias() -> Value {
    json!({ "filter": shown_to_readers() })
}

/// What finds everything but tombstones.
pub(crate) fn shown_to_readers() -> Value {
    json!({ "bool": { "must_not": { "term": { DELETED: true } } } })
}

fn check_keys(file: &Map<String, Value>) -> Result<(), String> {
    match file.keys().find(|key| !matches!(key.as_str(), "settings" | "mappings")) {
        None => Ok(()),
        Some(key) if key == "aliases" => {
            Err("`aliases` cannot be given: remove it, catchword makes the aliases, and readers use the collection's `index`".to_owned())
        }
        Some(key) => Err(format!("`{key}` is not known here: the file holds `settings` and `mappings`")),
    }
}

/// A pipeline could change a document on its way, and equal versions would no longer mean equal documents. The server's
/// index templates could bring one too, so both are switched off by name.
fn settings(given: Option<&Value>) -> Result<Map<String, Value>, String> {
    let mut settings = Map::new();
    flatten(&optional_object(given, "`settings`")?, "", &mut settings);
    for name in ["default_pipeline", "final_pipeline"] {
        if settings.insert(format!("index.{name}"), "_none".into()).is_some() {
            return Err(format!("`settings` has `{name}`: remove it, and build the document in the view instead"));
        }
    }
    Ok(settings)
}

/// Elasticsearch takes `{"index": {"number_of_replicas": 1}}`, `{"number_of_replicas": 1}` and `{"index.number_of_replicas": 1}` alike.
pub(super) fn flatten(settings: &Map<String, Value>, before: &str, flat: &mut Map<String, Value>) {
    for (name, value) in settings {
        let name = format!("{before}{name}");
        match value {
            Value::Object(nested) if !nested.is_empty() => flatten(nested, &format!("{name}."), flat),
            _ if name.starts_with("index.") => _ = flat.insert(name, value.clone()),
            _ => _ = flat.insert(format!("index.{name}"), value.clone()),
        }
    }
}

/// A digest of what a file says, however it is laid out: FNV-1a of its JSON with sorted keys. It only notices a change.
pub(super) fn digest(file: &Value) -> String {
    let hash =
        canonical(file).bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, String> = fields.iter().map(|(name, value)| (name, canonical(value))).collect();
            let fields: Vec<String> = sorted.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(all) => format!("[{}]", all.iter().map(canonical).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

fn check_routing(mappings: &Map<String, Value>) -> Result<(), String> {
    match mappings.get("_routing").and_then(|routing| routing.get("required")) {
        Some(required) if is(required, "true") => {
            Err("`mappings._routing.required` is true, and catchword writes without routing: remove it".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_enabled(mappings: &Map<String, Value>) -> Result<(), String> {
    match mappings.get("enabled") {
        Some(enabled) if is(enabled, "false") => {
            Err("`mappings.enabled` is false, and readers would see deleted documents: remove it, or write `\"dynamic\": false`".to_owned())
        }
        _ => Ok(()),
    }
}

/// A field that a document can add makes the mapping depend on which document came first.
fn check_dynamic(mapping: &Map<String, Value>, at: &str) -> Result<(), String> {
    if let Some(dynamic) = mapping.get("dynamic")
        && !is(dynamic, "strict")
        && !is(dynamic, "false")
    {
        return Err(format!(
            "`{at}.dynamic` is {dynamic}: write \"strict\" (an unknown field is an error) or false (it is kept and not searched)"
        ));
    }
    for (name, field) in mapping.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(field) = field.as_object() {
            check_dynamic(field, &format!("{at}.properties.{name}"))?;
        }
    }
    Ok(())
}

/// Elasticsearch takes `"true"` for `true` in a mapping.
fn is(value: &Value, word: &str) -> bool {
    value.as_str() == Some(word) || value.as_bool().is_some_and(|value| value.to_string() == word)
}

fn optional_object(value: Option<&Value>, what: &str) -> Result<Map<String, Value>, String> {
    value.map_or_else(|| Ok(Map::new()), |value| object(value, what).cloned())
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{what} is not a JSON object: write {{\"settings\": {{…}}, \"mappings\": {{…}}}}"))
}

#[cfg(test)]
mod tests;
