//! Answers of real servers, as they came: `scripts/answers` captured them, one file for each case and version. Each must be read as
//! the same, whatever the version.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;

use crate::elastic::bulk::{Body, Write};
use crate::elastic::chunks::Chunks;
use crate::elastic::client::Reply;
use crate::elastic::{Answer, Has, look};

const VERSIONS: [&str; 4] = ["8.19.16", "9.4.3", "opensearch-2.19.3", "opensearch-3.3.0"];
/// The test build of OpenSearch knows no login.
const OF_ELASTICSEARCH: [&str; 1] = ["wrong_password"];

/// The case, the keys that were written, and what the answers mean.
const BULKS: [(&str, &[&str], &[&str]); 16] = [
    ("applied_and_conflict", &["a", "a"], &["applied", "conflict"]),
    ("mapping_conflict", &["a"], &["refused"]),
    ("strict_mapping", &["a"], &["refused"]),
    ("long_keyword", &["a"], &["refused"]),
    ("cut_document", &["a"], &["refused"]),
    ("long_id", &["a"], &["refused"]),
    ("above_the_memory", &["a"], &["too large"]),
    ("above_the_body", &["a"], &["too large"]),
    ("flood_stage", &["a"], &["blocked"]),
    ("write_block", &["a"], &["blocked"]),
    ("closed_index", &["a"], &["blocked"]),
    ("missing_alias", &["a"], &["blocked"]),
    ("read_only_cluster", &["a"], &["blocked"]),
    ("shard_away", &["a"], &["unavailable"]),
    ("wrong_password", &["a"], &["denied"]),
    ("full_queue", &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"], &["applied", "overloaded"]),
];

const LOOKS: [(&str, &[&str]); 4] = [
    ("look_present_and_absent", &["a", "b"]),
    ("look_closed_index", &["a", "b"]),
    ("look_missing_alias", &["a"]),
    ("look_shard_away", &["a"]),
];

/// The files of a version: the status and the body of each case.
fn captured(version: &str) -> BTreeMap<String, (u16, Bytes)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/elastic/answer/captured").join(version);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = files.map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let (case, status) = name.strip_suffix(".json").unwrap().rsplit_once('.').unwrap();
        (case.to_owned(), (status.parse().unwrap(), std::fs::read(&path).unwrap().into()))
    });
    read.collect()
}

fn kind(answer: &Answer) -> String {
    answer.to_string().split(':').next().unwrap().to_owned()
}

fn answers(keys: &[&str], status: u16, body: Bytes) -> Vec<Answer> {
    let writes: Vec<Write<'_>> = keys.iter().map(|key| Write { key, version: 9, body: Body::Tombstone }).collect();
    let mut chunks = Chunks::of(&writes);
    let chunk = chunks.next().unwrap();
    chunks.answered(chunk, Ok(Reply { status, body }));
    chunks.into_answers()
}

#[test]
fn every_answer_to_a_bulk_means_the_same_in_every_version() {
    for version in VERSIONS {
        let mut captured = captured(version);
        let is_opensearch = version.starts_with("opensearch");
        for (case, keys, wanted) in BULKS.into_iter().filter(|(case, ..)| !is_opensearch || !OF_ELASTICSEARCH.contains(case)) {
            let (status, body) = captured.remove(case).unwrap_or_else(|| panic!("{version}: {case} was not captured"));
            let answers = answers(keys, status, body);
            let mut kinds: Vec<String> = answers.iter().map(kind).collect();
            if case == "full_queue" {
                // which of them found a place is chance
                kinds.sort();
                kinds.dedup();
                assert!(kinds.iter().all(|kind| wanted.contains(&kind.as_str())), "{version} {case}: {kinds:?}");
                assert!(kinds.contains(&"overloaded".to_owned()), "{version} {case}: {kinds:?}");
            } else {
                assert_eq!(kinds, wanted, "{version} {case}: {answers:?}");
            }
            for text in answers.iter().filter_map(Answer::reason) {
                assert!(!text.contains("secret") && !text.contains(&"0".repeat(20)), "{version} {case} tells a value: {text}");
                assert!(text.chars().count() <= 500, "{version} {case} is long: {text}");
            }
        }
        let rest: Vec<&String> = captured.keys().filter(|case| LOOKS.iter().all(|(look, _)| look != case)).collect();
        assert!(rest.is_empty(), "{version}: nobody reads {rest:?}");
    }
}

#[test]
fn every_answer_to_a_look_means_the_same_in_every_version() {
    for version in VERSIONS {
        let captured = captured(version);
        let seen = LOOKS.map(|(case, keys)| {
            let (status, body) = &captured[case];
            assert_eq!(*status, 200, "{version} {case}");
            look::read(body, keys)
        });
        assert_eq!(seen[0], Ok(vec![Has::Present(3), Has::Absent]), "{version}");
        assert!(matches!(&seen[1], Err(Answer::Blocked(why)) if why.starts_with("index_closed_exception")), "{version}: {:?}", seen[1]);
        assert!(matches!(&seen[2], Err(Answer::Blocked(why)) if why.starts_with("index_not_found_exception")), "{version}: {:?}", seen[2]);
        assert!(matches!(seen[3].as_deref(), Ok([Has::Unknown(_)])), "{version}: {:?}", seen[3]);
    }
}

#[test]
fn a_refusal_tells_what_is_behind_it() {
    for version in VERSIONS {
        let captured = captured(version);
        let told = |case: &str| {
            let (status, body) = captured[case].clone();
            answers(&["a"], status, body)[0].to_string()
        };
        let conflict = told("mapping_conflict");
        assert!(conflict.contains("field [n] of type [long]") && conflict.contains("For input string: …"), "{version}: {conflict}");
        assert!(told("cut_document").contains("caused by"), "{version}: {}", told("cut_document"));
    }
}

#[test]
fn an_answer_that_is_cut_short_settles_nothing() {
    for version in VERSIONS {
        let (status, body) = captured(version).remove("applied_and_conflict").unwrap();
        for end in 0..body.len() {
            let answers = answers(&["a", "a"], status, body.slice(..end));
            assert!(answers.iter().all(|answer| matches!(answer, Answer::Unknown(_))), "{version}, cut at {end}: {answers:?}");
        }
        for keys in [&["a"][..], &["a", "b"], &["a", "a", "a"]] {
            let answers = answers(keys, status, body.clone());
            assert!(answers.iter().all(|answer| matches!(answer, Answer::Unknown(_))), "{version}, {keys:?}: {answers:?}");
        }
    }
}
