//! The absences that ARCHITECTURE.md promises, checked by reading the sources.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A source file, without its comments and its tests.
struct Source {
    path: String,
    text: String,
}

#[test]
fn nothing_outside_elastic_speaks_http_to_elasticsearch() {
    let words = ["reqwest", "hyper::", "TransportBuilder", "elasticsearch::http", "elasticsearch::auth", "TcpStream"];
    // our own servers take connections and make none
    only_in(&rust("src"), &words, &["src/elastic/", "src/accept.rs"]);
}

#[test]
fn nothing_outside_job_names_its_tables() {
    let mut sources = rust("src");
    sources.extend(files("src", "sql"));
    only_in(&sources, &["catchword.job", "dead_job"], &["src/job/"]);
}

#[test]
fn sql_is_filled_in_one_file_and_written_in_sql_files() {
    let sources = rust("src");
    only_in(&sources, &["AssertSqlSafe"], &["src/collection/statements.rs"]);
    // the migrator's own bookkeeping and the pool's are literals; settings of a transaction and plain calls of our functions are anywhere
    let mut sources = sources;
    for source in &mut sources {
        for call in plain_calls(&source.text) {
            source.text = source.text.replace(&call, "");
        }
        source.text = source.text.replace("\"select set_config(", "").replace("\"select pg_catalog.set_config(", "");
    }
    let statements = ["\"select ", "\"insert ", "\"update ", "\"delete ", "\"with ", "\"create schema", "\"alter "];
    only_in(&sources, &statements, &["src/migrate/schema.rs", "src/database/mod.rs"]);
}

#[test]
fn no_document_is_written_or_deleted_without_a_version() {
    let sources = rust("src");
    // an index is dropped whole, by name, and a point in time given back
    only_in(&sources, &["Method::Delete"], &["src/elastic/index/drop.rs", "src/elastic/point_in_time.rs"]);
    only_in(&sources, &["\\\"index\\\":{"], &["src/elastic/bulk.rs"]);
    // old tombstones are swept, in one place
    only_in(&sources, &["\\\"delete\\\":"], &["src/elastic/sweep.rs"]);
    let actions = ["\\\"create\\\":{", "\\\"update\\\":", "_by_query", "/_doc", "/_update", "/_create"];
    absent(&sources, &actions);
    let bulk = sources.iter().find(|source| source.path == "src/elastic/bulk.rs").unwrap();
    assert!(bulk.text.contains("\\\"version_type\\\":\\\"external\\\""));
    let sweep = sources.iter().find(|source| source.path == "src/elastic/sweep.rs").unwrap();
    assert_eq!(sweep.text.matches("\\\"delete\\\":").count(), sweep.text.matches("\\\"version_type\\\":\\\"external_gte\\\"").count());
}

#[test]
fn compare_and_fate_decide_without_a_clock_a_client_or_chance() {
    let pure = [
        "src/compare.rs",
        "src/sync/fate.rs",
        "src/sync/search.rs",
        "src/wait/judge.rs",
        "src/check/judge.rs",
        "src/check/judge/collection.rs",
        "src/check/judge/freshness.rs",
        "src/doctor/mapping.rs",
        "src/collection/plan.rs",
        "src/elastic/answer.rs",
        "src/init/draft.rs",
        "src/init/field.rs",
        "src/init/key.rs",
        "src/init/kind.rs",
        "src/init/names.rs",
        "src/init/refuse.rs",
        "src/init/related.rs",
        "src/init/related/children.rs",
        "src/init/related/parents.rs",
        "src/init/settings.rs",
        "src/init/suspect.rs",
    ];
    let sources: Vec<Source> = rust("src").into_iter().filter(|source| pure.contains(&&*source.path)).collect();
    assert_eq!(sources.len(), pure.len());
    absent(
        &sources,
        &["async ", "await", "Instant", "now()", "Utc", "rand", "PgConnection", "PgPool", "Elastic,", "Elastic ", "\nstatic "],
    );
}

#[test]
fn nothing_outside_tests_panics_on_purpose() {
    let mut sources = rust("src");
    sources.extend(rust("examples/annotations/src"));
    absent(&sources, &[".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("]);
}

#[test]
fn one_place_each_for_transactions_metrics_printing_and_raising_the_sequence() {
    let sources = rust("src");
    only_in(&sources, &[".begin_with("], &["src/database/mod.rs"]);
    only_in(&sources, &["u64_counter(", "f64_histogram(", "_gauge("], &["src/metrics/"]);
    only_in(&sources, &["println!("], &["src/cli/"]);
    let mut sql = files("src", "sql");
    sql.extend(files("migrations", "sql"));
    only_in(&sql, &["setval("], &["migrations/0009_server.sql"]);
}

/// The parts from the bottom up. Each may name those before it and none behind it: so there is no cycle, and a call goes down.
const ORDER: [&str; 45] = [
    // the ground
    "crash",
    "host",
    "accept",
    "printable",
    "config",
    "elastic",
    "error",
    "traceparent",
    "alone",
    "database",
    "heartbeat",
    "job",
    "collection",
    "init",
    // the heart
    "compare",
    "look",
    "outcome",
    "metrics",
    "health",
    "context",
    "reindex",
    "sync",
    "direct",
    "wait",
    // operations
    "audit",
    "rebuild",
    "drift",
    "upkeep",
    "worker",
    "pause",
    "journal",
    "api_key",
    "history",
    "migrate",
    "standing",
    "status",
    "check",
    "gauges",
    "explain",
    "doctor",
    // the door, and who comes through it
    "catchword",
    "telemetry",
    "serve",
    "console",
    "cli",
];

#[test]
fn the_parts_name_one_another_in_one_direction() {
    let known: BTreeSet<String> = ORDER.iter().map(|part| (*part).to_owned()).collect();
    let there: BTreeSet<String> = parts().into_iter().filter(|part| part != "main" && part != "lib").collect();
    assert_eq!(there, known, "a new part has its place in the order");
    // the ground does not know collections and jobs of one another
    let ground = &[("job", "collection"), ("collection", "job"), ("config", "elastic"), ("elastic", "config")];
    for (n, part) in ORDER.iter().enumerate() {
        for named in named_by(part) {
            let Some(other) = ORDER.iter().position(|other| *other == named) else { panic!("{part} names {named}, which is no part") };
            assert!(other <= n, "{part} names {named}, which stands above it");
            assert!(!ground.contains(&(part, named.as_str())), "{part} names {named}");
        }
    }
}

#[test]
fn the_door_alone_has_methods_of_the_handle() {
    only_in(&rust("src"), &["impl Catchword"], &["src/catchword.rs"]);
}

#[test]
fn the_map_names_every_part_and_nothing_else() {
    let map = read("src/ARCHITECTURE.md");
    let listed = map.split_once("\n# Where things are").unwrap().1.split_once("\n# ").unwrap().0;
    let listed: BTreeSet<String> =
        listed.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(path, _)| path.to_owned()).collect();
    let wanted: BTreeSet<String> = parts()
        .iter()
        .map(|part| {
            let folder = root().join("src").join(part).is_dir();
            format!("src/{part}{}", if folder { "/" } else { ".rs" })
        })
        .collect();
    let inside: BTreeSet<String> = listed.iter().filter(|path| path.starts_with("src/")).cloned().collect();
    assert_eq!(inside, wanted);
    for path in listed {
        assert!(root().join(&path).exists(), "{path} is on the map and not there");
    }
}

#[test]
fn one_tls_provider_and_no_openssl() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--locked", "--offline", "--workspace", "-e", "normal", "--prefix", "none", "--no-dedupe"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
        .collect();
    let versions = |name: &str| crates.iter().filter(|(found, _)| *found == name).count();
    assert_eq!((versions("rustls"), versions("ring")), (1, 1));
    for other in ["openssl", "openssl-sys", "native-tls", "aws-lc-rs", "aws-lc-sys", "aws-lc-fips-sys", "boring"] {
        assert_eq!(versions(other), 0, "{other} is in the tree");
    }
}

#[test]
fn unsafe_code_is_forbidden_in_every_crate() {
    for root in ["src/lib.rs", "src/main.rs", "examples/annotations/src/lib.rs", "examples/annotations/src/main.rs"] {
        assert!(read(root).contains("#![forbid(unsafe_code)]"), "{root}");
    }
    for manifest in ["Cargo.toml", "examples/annotations/Cargo.toml"] {
        assert!(read(manifest).contains("[lints.rust]\nunsafe_code = \"forbid\""), "{manifest}");
    }
}

/// Literals that only call a function of ours with what is bound, and nothing else: `"select catchword.detach($1)"`. Such a statement may
/// stand where it is used. `statements` sees to it that Postgres takes them.
pub fn plain_calls(code: &str) -> BTreeSet<String> {
    let literals = code.split("\"select catchword.").skip(1).filter_map(|rest| rest.split_once('"'));
    let is_plain = |call: &&str| {
        let (name, arguments) = call.split_once('(').unwrap_or_default();
        let bound = arguments.strip_suffix(')').map(|list| list.split(", ").filter(|place| !place.is_empty()).collect::<Vec<_>>());
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            && bound.is_some_and(|bound| bound.iter().zip(1..).all(|(place, n)| *place == format!("${n}")))
    };
    literals.map(|(call, _)| call).filter(is_plain).map(|call| format!("\"select catchword.{call}\"")).collect()
}

#[test]
fn a_plain_call_is_told_from_other_sql() {
    let plain = ["\"select catchword.detach($1)\"", "\"select catchword.take_over()\"", "\"select catchword.draw($1, $2)\""];
    for call in plain {
        assert_eq!(plain_calls(&format!("query({call}).bind")), BTreeSet::from([call.to_owned()]));
    }
    for other in ["catchword.draw($2)", "catchword.job", "catchword.draw($1) from x", "catchword.draw($1 || 'x')", "1"] {
        assert_eq!(plain_calls(&format!("\"select {other}\"")), BTreeSet::new(), "{other}");
    }
}

/// Each word occurs, so that a word nobody uses any more does not pass for an absence, and only in these places.
fn only_in(sources: &[Source], words: &[&str], places: &[&str]) {
    let mut seen = false;
    for source in sources {
        let allowed = places.iter().any(|place| source.path.starts_with(place));
        for word in words.iter().filter(|word| source.text.contains(**word)) {
            assert!(allowed, "{} has {word}", source.path);
            seen = true;
        }
    }
    assert!(seen, "none of {words:?} is in {places:?} any more");
}

fn absent(sources: &[Source], words: &[&str]) {
    for source in sources {
        for word in words {
            assert!(!source.text.contains(word), "{} has {word}", source.path);
        }
    }
}

/// The top-level parts of the crate: files and folders of src.
fn parts() -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("src")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.contains('.') || name.ends_with(".rs")).map(|name| name.trim_end_matches(".rs").to_owned()).collect()
}

/// The parts that a part names: the first word of each `crate::…`.
fn named_by(part: &str) -> BTreeSet<String> {
    let (file, folder) = (format!("src/{part}.rs"), format!("src/{part}/"));
    let mut named = BTreeSet::new();
    for source in rust("src").iter().filter(|source| source.path == file || source.path.starts_with(&folder)) {
        for rest in source.text.split("crate::").skip(1) {
            let list = rest.strip_prefix('{').map_or_else(|| first_word(rest), |list| list.split('}').next().unwrap_or_default());
            named.extend(list.split(',').map(|entry| part_of(first_word(entry.trim()))).filter(|name| !name.is_empty()));
        }
    }
    named
}

/// The part of a name that lib.rs shows.
fn part_of(name: &str) -> String {
    let shown = [("Error", "error"), ("Catchword", "catchword"), ("Outcome", "outcome"), ("Verdict", "compare"), ("Worker", "worker")];
    shown.iter().find(|(shown, _)| *shown == name).map_or(name, |(_, part)| part).to_owned()
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// The Rust files below a folder. Files of tests and test modules are left out, and so are comments.
fn rust(folder: &str) -> Vec<Source> {
    let is_test = |source: &Source| ["/tests.rs", "/scratch.rs"].iter().any(|name| source.path.ends_with(name));
    let mut sources = files(folder, "rs");
    sources.retain(|source| !is_test(source));
    for source in &mut sources {
        let code = source.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        source.text = lines.collect::<Vec<_>>().join("\n");
    }
    sources
}

fn files(folder: &str, extension: &str) -> Vec<Source> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push(Source { path: relative(&path), text });
            }
        }
    }
    assert!(!found.is_empty(), "no .{extension} in {folder}");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
