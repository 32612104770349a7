use super::*;

fn plan(mapping: Value) -> IndexPlan {
    IndexPlan {
        alias: "annotation".to_owned(),
        search_alias: None,
        mapping,
        installation: Uuid::from_u128(7),
        collection: "annotations".to_owned(),
    }
}

fn refusal(mapping: Value) -> String {
    plan(mapping).create_request().unwrap_err().to_string()
}

#[test]
fn the_request_has_the_file_and_what_catchword_needs() {
    let given = json!({
        "settings": { "index": { "number_of_shards": 2 } },
        "mappings": { "_meta": { "owner": "us" }, "properties": { "text": { "type": "text" } } },
    });
    let digest = digest(&given);
    assert_eq!(
        plan(given).create_request().unwrap(),
        json!({
            "settings": {
                "index.number_of_shards": 2,
                "index.default_pipeline": "_none",
                "index.final_pipeline": "_none",
            },
            "mappings": {
                "dynamic": "strict",
                "_meta": {
                    "owner": "us",
                    "catchword": { "installation": "00000000-0000-0000-0000-000000000007", "collection": "annotations", "mapping": digest },
                },
                "properties": { "text": { "type": "text" }, "catchword_deleted": { "type": "boolean" } },
            },
            "aliases": {
                "annotation": { "filter": { "bool": { "must_not": { "term": { "catchword_deleted": true } } } } },
                "annotation-000001-write": { "is_write_index": true },
            },
        })
    );
}

#[test]
fn an_empty_file_is_a_strict_index() {
    let request = plan(json!({})).create_request().unwrap();
    assert_eq!(request["mappings"]["dynamic"], "strict");
    assert_eq!(request["mappings"]["properties"], json!({ "catchword_deleted": { "type": "boolean" } }));
}

#[test]
fn dynamic_may_be_strict_or_false_everywhere() {
    for dynamic in [json!("strict"), json!("false"), json!(false)] {
        let request = plan(json!({ "mappings": { "dynamic": dynamic } })).create_request().unwrap();
        assert_eq!(request["mappings"]["dynamic"], dynamic);
    }
    for dynamic in [json!("true"), json!(true), json!("runtime"), json!(7)] {
        let text = refusal(json!({ "mappings": { "dynamic": dynamic } }));
        assert!(text.contains("`mappings.dynamic`") && text.contains("\"strict\""), "{text}");
        let deep = json!({ "a": { "properties": { "b": { "type": "object", "dynamic": dynamic } } } });
        let text = refusal(json!({ "mappings": { "properties": deep } }));
        assert!(text.contains("`mappings.properties.a.properties.b.dynamic`"), "{text}");
    }
    // a field may have that name
    let named = json!({ "dynamic": { "type": "boolean" } });
    assert!(plan(json!({ "mappings": { "properties": named } })).create_request().is_ok());
}

#[test]
fn what_would_break_a_promise_is_refused_with_what_to_do() {
    for (mapping, said) in [
        (json!([]), "the file is not a JSON object"),
        (json!({ "mappings": [] }), "`mappings` is not a JSON object"),
        (json!({ "setings": {} }), "`setings` is not known here: the file holds `settings` and `mappings`"),
        (json!({ "aliases": {} }), "`aliases` cannot be given: remove it"),
        (json!({ "settings": { "index": { "default_pipeline": "p" } } }), "`default_pipeline`: remove it"),
        (json!({ "settings": { "index.final_pipeline": "p" } }), "`final_pipeline`: remove it"),
        (json!({ "settings": { "default_pipeline": "p" } }), "`default_pipeline`: remove it"),
        (json!({ "mappings": { "_routing": { "required": true } } }), "`mappings._routing.required` is true"),
        (json!({ "mappings": { "_routing": { "required": "true" } } }), "`mappings._routing.required` is true"),
        (json!({ "mappings": { "enabled": false } }), "`mappings.enabled` is false"),
        (json!({ "mappings": { "properties": { "catchword_deleted": {} } } }), "remove it, catchword adds it"),
        (json!({ "mappings": { "runtime": { "catchword_deleted": {} } } }), "catchword's own: remove it"),
        (json!({ "mappings": { "_meta": { "catchword": {} } } }), "`mappings._meta.catchword` is catchword's own"),
    ] {
        let text = refusal(mapping);
        assert!(text.starts_with("the mapping of collection annotations: ") && text.contains(said), "{text}");
    }
    assert!(plan(json!({ "mappings": { "_routing": { "required": false } } })).create_request().is_ok());
}

#[test]
fn a_file_has_another_digest_only_if_it_says_something_else() {
    let one: Value =
        serde_json::from_str(r#"{"mappings": {"properties": {"a": {"type": "text"}, "b": {"type": "long"}}}, "settings": {}}"#).unwrap();
    let same: Value =
        serde_json::from_str(r#"{"settings":{},"mappings":{"properties":{"b":{"type":"long"},"a":{"type":"text"}}}}"#).unwrap();
    let other: Value =
        serde_json::from_str(r#"{"settings":{},"mappings":{"properties":{"b":{"type":"long"},"a":{"type":"keyword"}}}}"#).unwrap();
    assert_eq!(digest(&one), digest(&same));
    assert_ne!(digest(&one), digest(&other));
}

#[test]
fn settings_are_the_same_however_they_are_nested() {
    let flat = json!({ "index.number_of_replicas": 1, "index.default_pipeline": "_none", "index.final_pipeline": "_none" });
    for given in
        [json!({ "number_of_replicas": 1 }), json!({ "index": { "number_of_replicas": 1 } }), json!({ "index.number_of_replicas": 1 })]
    {
        assert_eq!(Value::from(plan(json!({ "settings": given })).settings().unwrap()), flat);
    }
}
