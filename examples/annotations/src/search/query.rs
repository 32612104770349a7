use serde_json::{Value, json};

use super::Ask;

/// The question to Elasticsearch. Values only ever stand where a value is expected, so nothing that
/// a client types can become a part of the question.
pub(super) fn query(ask: &Ask) -> Value {
    let term = |field: &str, value: &Option<String>| value.as_ref().map(|value| json!({ "term": { field: value } }));
    let mut filter: Vec<Value> =
        [term("target_uri_normalized", &ask.url), term("userid", &ask.user), term("groupid", &ask.group)].into_iter().flatten().collect();
    filter.extend(ask.tags.iter().map(|tag| json!({ "term": { "tags": tag } })));
    // in the filter: the order is by time, so nobody needs a score
    filter.extend(ask.q.as_ref().map(|words| {
        json!({ "multi_match": {
            "query": words, "fields": ["text", "document.title"], "type": "cross_fields", "operator": "and",
        } })
    }));
    json!({
        "query": { "bool": { "filter": filter } },
        // the newest change first; the id decides between equal times, so that pages do not overlap
        "sort": [{ "updated": "desc" }, { "id": "asc" }],
        "from": ask.offset,
        "size": ask.limit,
        "track_total_hits": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(parameters: &[(&str, &str)]) -> Value {
        query(&Ask::read(parameters.iter().map(|(name, value)| (name.to_string(), value.to_string()))).unwrap())
    }

    #[test]
    fn each_parameter_is_one_condition() {
        let question =
            ask(&[("url", "https://example.org/"), ("user", "u"), ("group", "g"), ("tag", "a"), ("tag", "b"), ("q", "two words")]);
        let filter = question["query"]["bool"]["filter"].as_array().unwrap();
        assert_eq!(filter.len(), 6);
        assert_eq!(filter[0], json!({ "term": { "target_uri_normalized": "https://example.org/" } }));
        assert_eq!(filter[5]["multi_match"]["query"], "two words");
    }

    #[test]
    fn without_parameters_everything_is_found_in_a_total_order() {
        let question = ask(&[]);
        assert_eq!(question["query"], json!({ "bool": { "filter": [] } }));
        assert_eq!(question["sort"], json!([{ "updated": "desc" }, { "id": "asc" }]));
    }
}
