//! The answers here were given by Elasticsearch 9.4.3, unless a test says otherwise. Whole ones of more versions: `captured`.

use super::Answer::{self, *};
use super::{of_item, of_request};

fn item(status: u16, error_type: &str, reason: &str) -> Answer {
    of_item(status, Some(error_type), Some(reason))
}

#[test]
fn only_a_success_without_an_error_is_applied() {
    assert_eq!(of_item(200, None, None), Applied);
    assert_eq!(of_item(201, None, None), Applied);
    assert!(matches!(item(200, "some_exception", "why"), Unknown(_)));
    assert!(matches!(of_item(202, None, None), Unknown(_)));
}

#[test]
fn a_newer_version_is_a_conflict_and_another_409_is_unknown() {
    let reason = "[it's/k]: version conflict, current version [2] is higher or equal to the one provided [2]";
    assert_eq!(item(409, "version_conflict_engine_exception", reason), Conflict);
    assert!(matches!(item(409, "some_exception", ""), Unknown(_)));
}

#[test]
fn a_fault_of_the_document_is_refused_without_its_values() {
    let parsing = item(
        400,
        "document_parsing_exception",
        "[1:6] failed to parse field [n] of type [long] in document with id 'it's/k'. Preview of field's value: 'secret val'",
    );
    let expected = "document_parsing_exception: failed to parse field [n] of type [long] in document with id …";
    assert_eq!(parsing, Refused(expected.to_owned()));
    let strict = item(
        400,
        "strict_dynamic_mapping_exception",
        "[1:10] mapping set to strict, dynamic introduction of [extra] within [_doc] is not allowed",
    );
    let expected = "strict_dynamic_mapping_exception: mapping set to strict, dynamic introduction of [extra] within [_doc] is not allowed";
    assert_eq!(strict, Refused(expected.to_owned()));
    assert!(matches!(item(400, "illegal_argument_exception", "if _id is specified it must not be empty"), Refused(_)));
    assert!(matches!(of_item(422, None, None), Refused(_)));
    assert!(matches!(of_item(413, None, None), TooLarge(_)));
}

#[test]
fn a_fault_of_the_index_is_not_the_documents() {
    let blocked = [
        (400, "index_closed_exception", "closed"),
        (403, "cluster_block_exception", "index [curlprobe-000001] blocked by: [FORBIDDEN/8/index write (api)];"),
        (
            429,
            "cluster_block_exception",
            "index [curlprobe-000001] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark, index has read-only-allow-delete block; for more information, see https://www.elastic.co/docs/troubleshoot/elasticsearch/fix-watermark-errors?version=9.4];",
        ),
        (
            404,
            "index_not_found_exception",
            "no such index [curlprobe-000001-write] and [require_alias] request flag is [true] and [curlprobe-000001-write] is not an alias",
        ),
        (
            400,
            "illegal_argument_exception",
            "no write index is defined for alias [curlprobe-000001-write]. The write index may be explicitly disabled using is_write_index=false or the alias points to multiple indices without one being designated as a write index",
        ),
    ];
    for (status, error_type, reason) in blocked {
        let Blocked(text) = item(status, error_type, reason) else { panic!("{error_type}") };
        let start: String = format!("{error_type}: {reason}").chars().take(200).collect();
        assert!(text.starts_with(&start), "{text}");
    }
}

#[test]
fn a_shard_that_is_away_is_named_and_the_documents_are_not() {
    let reason = r#"[curlprobe-away][0] primary shard is not active Timeout: [2s], request: [BulkShardRequest [[curlprobe-away][0]] containing [index {[curlprobe-away-write][z], source[{"n":1}]}]]"#;
    let expected = "unavailable_shards_exception: [curlprobe-away][0] primary shard is not active Timeout: [2s]";
    assert_eq!(item(503, "unavailable_shards_exception", reason), Unavailable(expected.to_owned()));
    // not seen: a cluster without a master
    let reason = "blocked by: [SERVICE_UNAVAILABLE/2/no master];";
    assert!(matches!(item(503, "cluster_block_exception", reason), Unavailable(_)));
}

#[test]
fn overload_is_told_from_a_server_that_fails_at_a_document() {
    // not seen: a full queue, a breaker
    assert!(matches!(item(429, "es_rejected_execution_exception", "rejected execution"), Overloaded(_)));
    assert!(matches!(item(503, "circuit_breaking_exception", "[parent] Data too large"), Overloaded(_)));
    assert!(matches!(of_item(429, None, None), Overloaded(_)));
    assert!(matches!(item(500, "null_pointer_exception", ""), Failed(_)));
    assert!(matches!(item(503, "process_cluster_event_timeout_exception", ""), Unavailable(_)));
}

#[test]
fn credentials_are_told_from_blocks() {
    let body = br#"{"error":{"root_cause":[],"type":"security_exception","reason":"action [indices:data/write/bulk] is unauthorized for user [reader1] with effective roles [reader], this action is granted by the index privileges [create_doc,create,delete,index,write,all]"},"status":403}"#;
    let Denied(text) = of_request(403, body) else { panic!("not denied") };
    assert!(text.contains("unauthorized for user [reader1]"), "{text}");
    let body = br#"{"error":{"root_cause":[],"type":"security_exception","reason":"unable to authenticate user [root1] for REST request [/x/_bulk]","header":{"WWW-Authenticate":["ApiKey"]}},"status":401}"#;
    assert!(matches!(of_request(401, body), Denied(_)));
    assert!(matches!(of_request(403, b"<html>forbidden</html>"), Denied(_)));
    assert!(matches!(item(403, "security_exception", "action is unauthorized"), Denied(_)));
    let body = br#"{"error":{"root_cause":[],"type":"cluster_block_exception","reason":"blocked by: [FORBIDDEN/6/cluster read-only (api)];"},"status":403}"#;
    assert!(matches!(of_request(403, body), Blocked(_)));
}

#[test]
fn a_whole_request_is_refused_too_large_or_unknown() {
    let body = br#"{"error":{"root_cause":[],"type":"action_request_validation_exception","reason":"Validation Failed: 1: id [aaaa] is too long, must be no longer than 512 bytes but was: 600;"},"status":400}"#;
    let expected =
        "action_request_validation_exception: Validation Failed: 1: id … is too long, must be no longer than 512 bytes but was: 600;";
    assert_eq!(of_request(400, body), Refused(expected.to_owned()));
    assert!(matches!(of_request(413, b""), TooLarge(_)));
    let body = br#"{"error":{"root_cause":[],"type":"es_rejected_execution_exception","reason":"rejected execution of coordinating operation [coordinating_and_primary_bytes=0, replica_bytes=0, all_bytes=0, coordinating_operation_bytes=4000208, max_coordinating_bytes=3145728]"},"status":429}"#;
    assert!(matches!(of_request(429, body), TooLarge(_)));
    assert!(matches!(of_request(429, b"slow down"), Overloaded(_)));
    for (status, body) in [
        (400, &b"<html>bad request</html>"[..]),
        (400, br#"{"error":"no handler found for uri [/_nope/x/y/z] and method [POST]"}"#),
        (404, b"default backend"),
        (405, br#"{"error":"Incorrect HTTP method for uri [/] and method [GET], allowed: [DELETE]","status":405}"#),
        (502, b"<html>bad gateway</html>"),
        (503, b""),
        (301, b""),
    ] {
        assert!(matches!(of_request(status, body), Unknown(_)), "{status}");
    }
}

#[test]
fn an_answer_says_its_kind_and_its_reason() {
    assert_eq!(Applied.to_string(), "applied");
    assert_eq!(TooLarge("status 413".to_owned()).to_string(), "too large: status 413");
    assert_eq!(Unknown("why".to_owned()).reason(), Some("why"));
}
