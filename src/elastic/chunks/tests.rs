use bytes::Bytes;

use super::*;
use crate::elastic::bulk::Body;

fn write(key: &str, bytes: usize) -> Write<'_> {
    Write { key, version: 2, body: Body::Document(Bytes::from(vec![b' '; bytes])) }
}

fn reply(status: u16, body: impl Into<Bytes>) -> Result<Reply, Answer> {
    Ok(Reply { status, body: body.into() })
}

/// A server that applies everything.
fn applied(writes: &[Write<'_>]) -> Result<Reply, Answer> {
    let items: Vec<_> = writes.iter().map(|write| serde_json::json!({ "index": { "_id": write.key, "status": 201 } })).collect();
    reply(200, serde_json::json!({ "items": items }).to_string())
}

fn refused() -> Result<Reply, Answer> {
    reply(400, r#"{"error":{"type":"action_request_validation_exception","reason":"why"},"status":400}"#)
}

/// Sends everything to a server, and counts the requests.
fn deliver(writes: &[Write<'_>], server: impl Fn(&[Write<'_>]) -> Result<Reply, Answer>) -> (Vec<Answer>, usize) {
    let mut chunks = Chunks::of(writes);
    let mut requests = 0;
    while let Some(chunk) = chunks.next() {
        requests += 1;
        let reply = server(&writes[chunk.clone()]);
        chunks.answered(chunk, reply);
    }
    (chunks.into_answers(), requests)
}

#[test]
fn a_batch_of_small_documents_is_one_request() {
    let (answers, requests) = deliver(&vec![write("a", 500); MAX_WRITES], applied);
    assert_eq!((answers, requests), (vec![Answer::Applied; MAX_WRITES], 1));
    let (answers, requests) = deliver(&vec![write("a", 500); MAX_WRITES + 1], applied);
    assert_eq!((answers.len(), requests), (MAX_WRITES + 1, 2));
    assert_eq!(deliver(&[], applied), (vec![], 0));
}

#[test]
fn a_request_is_bounded_by_bytes() {
    let writes = vec![write("a", MAX_BYTES / 3); 7];
    let (answers, requests) = deliver(&writes, |chunk| {
        assert!(chunk.iter().map(Write::weight).sum::<usize>() <= MAX_BYTES);
        applied(chunk)
    });
    assert_eq!((answers, requests), (vec![Answer::Applied; 7], 4));
}

#[test]
fn a_document_above_the_limit_is_never_sent_and_the_others_are() {
    let writes = [write("a", 1), write("b", MAX_DOCUMENT_BYTES + 1), write("c", MAX_DOCUMENT_BYTES), write("d", 1)];
    let (answers, _) = deliver(&writes, |chunk| {
        assert!(chunk.iter().all(|write| write.key != "b"));
        applied(chunk)
    });
    assert!(matches!(&answers[..], [Answer::Applied, Answer::TooLarge(_), Answer::Applied, Answer::Applied]), "{answers:?}");
}

#[test]
fn an_answer_is_matched_by_position_and_id() {
    let writes = [write("a", 1), write("b", 1)];
    let one = r#"{"index":{"_id":"a","status":201}}"#;
    let two = r#"{"index":{"_id":"b","status":400,"error":{"type":"document_parsing_exception","reason":"why"}}}"#;
    let answers = read(format!(r#"{{"items":[{one},{two}]}}"#).as_bytes(), &writes).unwrap();
    assert_eq!(answers, [Answer::Applied, Answer::Refused("document_parsing_exception: why".to_owned())]);

    let three = r#"{"index":{"_id":"c","status":201}}"#;
    for items in [format!("{two},{one}"), one.to_owned(), format!("{one},{two},{three}"), format!("{one},{three}"), String::new()] {
        let body = format!(r#"{{"items":[{items}]}}"#);
        assert!(matches!(read(body.as_bytes(), &writes), Err(Answer::Unknown(_))), "{body}");
    }
}

#[test]
fn an_answer_that_is_cut_says_nothing_of_any_write() {
    let whole = br#"{"items":[{"index":{"_id":"a","status":201}}]}"#;
    assert!(read(whole, &[write("a", 1)]).is_ok());
    for end in 0..whole.len() {
        let (answers, _) = deliver(&[write("a", 1)], |_| reply(200, whole[..end].to_vec()));
        assert!(matches!(answers[..], [Answer::Unknown(_)]), "{end}");
    }
}

#[test]
fn the_one_that_fails_a_whole_request_is_found_and_the_others_are_written() {
    let keys: Vec<String> = (0..MAX_WRITES).map(|n| n.to_string()).collect();
    let writes: Vec<_> = keys.iter().map(|key| write(key, 10)).collect();
    let (answers, requests) =
        deliver(&writes, |chunk| if chunk.iter().any(|write| write.key == "1234") { refused() } else { applied(chunk) });
    for (answer, key) in answers.iter().zip(&keys) {
        assert_eq!(matches!(answer, Answer::Refused(_)), key == "1234", "{key}: {answer}");
        assert_eq!(*answer == Answer::Applied, key != "1234");
    }
    assert!(requests < 30, "{requests}");
}

#[test]
fn what_is_too_large_together_goes_in_parts_and_alone_is_too_large() {
    let writes = [write("a", 1000), write("b", 1000), write("c", 5000), write("d", 1000)];
    let (answers, _) = deliver(&writes, |chunk| {
        let bytes: usize = chunk.iter().map(Write::weight).sum();
        if bytes > 3000 { reply(413, "") } else { applied(chunk) }
    });
    assert!(matches!(&answers[..], [Answer::Applied, Answer::Applied, Answer::TooLarge(_), Answer::Applied]), "{answers:?}");
}

#[test]
fn a_server_that_refuses_everything_is_not_asked_for_ever() {
    let (answers, requests) = deliver(&vec![write("a", 1); MAX_WRITES], |_| refused());
    assert!(requests <= 2 * MAX_SPLITS + 1, "{requests}");
    let unknown = answers.iter().filter(|answer| matches!(answer, Answer::Unknown(_))).count();
    assert!(unknown > MAX_WRITES - MAX_SPLITS, "{unknown}");
}

#[test]
fn what_stops_a_request_stops_those_after_it() {
    let writes = vec![write("a", 1); 3 * MAX_WRITES];
    for answer in [
        Answer::Unknown("no answer in time".to_owned()),
        Answer::Unreachable("no connection".to_owned()),
        Answer::Denied("status 401".to_owned()),
    ] {
        let (answers, requests) = deliver(&writes, |_| Err(answer.clone()));
        assert_eq!((answers, requests), (vec![answer; 3 * MAX_WRITES], 1));
    }
    let (answers, requests) = deliver(&writes, |_| reply(429, ""));
    assert_eq!((answers, requests), (vec![Answer::Overloaded("status 429".to_owned()); 3 * MAX_WRITES], 1));
}

#[test]
fn an_item_that_concerns_the_whole_index_stops_the_requests_after_it() {
    let writes = vec![write("a", 1); 2 * MAX_WRITES];
    let closed = r#"{"index":{"_id":"a","status":400,"error":{"type":"index_closed_exception","reason":"closed"}}}"#;
    let body = format!(r#"{{"items":[{}]}}"#, vec![closed; MAX_WRITES].join(","));
    let (answers, requests) = deliver(&writes, |_| reply(200, body.clone()));
    let blocked = Answer::Blocked("index_closed_exception: closed".to_owned());
    assert_eq!((answers, requests), (vec![blocked; 2 * MAX_WRITES], 1));

    let refused = closed.replace("index_closed_exception", "document_parsing_exception");
    let body = format!(r#"{{"items":[{}]}}"#, vec![refused; MAX_WRITES].join(","));
    let (_, requests) = deliver(&writes, |_| reply(200, body.clone()));
    assert_eq!(requests, 2);
}
