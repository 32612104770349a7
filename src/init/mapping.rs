//! The mapping of the index. JSON has no comments: the reasons are in the view and in the configuration. Pure.

use serde_json::Value;

use super::draft::Draft;
use super::field::Mapping;

/// Elasticsearch takes a thousand fields. Above this the limit is raised, with room for those to come.
const MANY: usize = 800;

pub(super) fn text(draft: &Draft) -> String {
    let fields: Vec<(String, Mapping)> = draft.fields().map(|field| (field.name.clone(), field.mapping.clone())).collect();
    let count: usize = fields.iter().map(|(_, mapping)| mapping.count()).sum();
    let limit = if count > MANY { format!(",\n      \"mapping.total_fields.limit\": {}", count + MANY) } else { String::new() };
    format!(
        "{{\n  \"settings\": {{\n    \"index\": {{\n      \"number_of_shards\": 1,\n      \"auto_expand_replicas\": \"0-1\"{limit}\n    }}\n  }},\n  \
         \"mappings\": {{\n    \"dynamic\": \"strict\",\n    \"properties\": {}\n  }}\n}}\n",
        properties(&fields, 4)
    )
}

/// One field on each line.
fn properties(fields: &[(String, Mapping)], depth: usize) -> String {
    let indent = " ".repeat(depth);
    let line = |(name, mapping): &(String, Mapping)| {
        let mapping = match mapping {
            Mapping::One(json) => json.clone(),
            Mapping::Object(fields) => format!("{{\n{indent}    \"properties\": {}\n{indent}  }}", properties(fields, depth + 4)),
        };
        format!("{indent}  {}: {mapping}", Value::from(name.as_str()))
    };
    if fields.is_empty() {
        return "{}".into();
    }
    format!("{{\n{}\n{indent}}}", fields.iter().map(line).collect::<Vec<_>>().join(",\n"))
}
