//! What is decided without a server: comparing, classifying an answer, building a bulk's body. Times move with the machine;
//! docs/benchmarks.md says how to count instructions instead.

use std::hint::black_box;

use bytes::Bytes;
use catchword::collection::Want;
use catchword::compare::compare;
use catchword::elastic::{Body, Has, Write, answer, bulk, look};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A batch.
const BATCH: usize = 2_500;

fn keys() -> Vec<String> {
    (0..BATCH).map(|n| format!("0d0a5c1e-6a3b-4b9e-9d7a-{n:012x}")).collect()
}

fn comparing(c: &mut Criterion) {
    let pairs: Vec<(Want, Has)> = (0..BATCH as i64)
        .map(|n| match n % 4 {
            0 => (Want::Present(n), Has::Present(n)),
            1 => (Want::Present(n), Has::Absent),
            2 => (Want::Deleted(n), Has::Present(n - 1)),
            _ => (Want::Never, Has::Absent),
        })
        .collect();
    let mut group = c.benchmark_group("pure");
    group.throughput(Throughput::Elements(BATCH as u64));
    group
        .bench_function("compare", |b| b.iter(|| pairs.iter().map(|(want, has)| compare(*want, has)).filter(|v| v.is_satisfied()).count()));
}

fn classifying(c: &mut Criterion) {
    let items = [
        (201, None, None),
        (
            409,
            Some("version_conflict_engine_exception"),
            Some("[1]: version conflict, current version [4] is higher or equal to the one provided [2]"),
        ),
        (
            400,
            Some("document_parsing_exception"),
            Some("[1:12] failed to parse field [n] of type [long] in document with id '1'. Preview of field's value: 'x'"),
        ),
        (429, Some("es_rejected_execution_exception"), Some("rejected execution of coordinating operation")),
    ];
    let mut group = c.benchmark_group("pure");
    group.throughput(Throughput::Elements(items.len() as u64));
    group.bench_function("classify", |b| {
        b.iter(|| items.iter().for_each(|(status, error, reason)| _ = black_box(answer::of_item(*status, *error, *reason))));
    });
}

fn building(c: &mut Criterion) {
    let keys = keys();
    let document = Bytes::from(format!("{{\"text\":\"{}\"}}", "a note ".repeat(70)));
    let writes: Vec<Write<'_>> =
        keys.iter().zip(1..).map(|(key, version)| Write { key, version, body: Body::Document(document.clone()) }).collect();
    let mut group = c.benchmark_group("pure");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("build", |b| b.iter(|| bulk::body(black_box(&writes))));
}

fn reading(c: &mut Criterion) {
    let keys = keys();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let docs: Vec<String> = keys.iter().map(|key| format!("{{\"_id\":\"{key}\",\"_version\":2,\"found\":true}}")).collect();
    let answer = format!("{{\"docs\":[{}]}}", docs.join(","));
    let mut group = c.benchmark_group("pure");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("read a look", |b| b.iter(|| look::read(black_box(answer.as_bytes()), &keys)));
}

criterion_group!(pure, comparing, classifying, building, reading);
criterion_main!(pure);
