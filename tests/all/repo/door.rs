//! What an application may call. A change of it is a decision: it changes `door.golden`, and people see it in the review.

use std::path::PathBuf;

const GOLDEN: &str = "tests/all/repo/door.golden";

#[test]
fn the_door_is_the_golden_one() {
    let door = door();
    if std::env::var_os("RENEW_DOOR").is_some() {
        std::fs::write(root().join(GOLDEN), &door).unwrap();
    }
    let golden = read(GOLDEN);
    assert_eq!(door, golden, "what is public changed; if that is meant: RENEW_DOOR=1 cargo test --test all door::");
}

#[test]
fn what_the_commands_need_is_not_in_a_library_without_them() {
    let tree = |features: &[&str]| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut words = vec!["tree", "--locked", "--offline", "--package", "catchword", "-e", "normal", "--prefix", "none"];
        words.extend(features);
        let tree = std::process::Command::new(cargo).args(words).current_dir(root()).output().unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        let names = String::from_utf8(tree.stdout).unwrap();
        names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
    };
    let (bare, whole) = (tree(&["--no-default-features"]), tree(&[]));
    // hyper itself comes with the HTTP client
    for name in [
        "clap",
        "axum",
        "crossterm",
        "indicatif",
        "anyhow",
        "tracing-subscriber",
        "opentelemetry-otlp",
        "opentelemetry-prometheus",
        "tonic",
        "prometheus",
    ] {
        assert!(whole.contains(name), "{name} is not used any more");
        assert!(!bare.contains(name), "{name} is in the library without its features");
    }
}

/// The names that lib.rs exports, and the methods of each type.
fn door() -> String {
    let lib = read("src/lib.rs");
    let exported = lib.split_once("// The door.").unwrap().1;
    let mut lines = Vec::new();
    for line in exported.lines().filter_map(|line| line.strip_prefix("pub use parts::")) {
        let (part, names) = line.trim_end_matches(';').split_once("::").unwrap_or((line.trim_end_matches(';'), ""));
        if names.is_empty() {
            lines.push(format!("mod {part}"));
            lines.extend(public_names(part));
            continue;
        }
        for name in names.trim_matches(['{', '}']).split(", ") {
            lines.push(name.to_owned());
            lines.extend(methods(part, name));
        }
    }
    lines.join("\n") + "\n"
}

/// What a public module shows: its own public things, and those of its files that it names.
fn public_names(part: &str) -> Vec<String> {
    let text = read(&format!("src/{part}/mod.rs"));
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_public = |line: &&str| line.starts_with("pub ") && !line.starts_with("pub(");
    let shown = code.lines().filter(is_public).map(|line| line.split(['{', ';', '=', '(']).next().unwrap_or_default().trim());
    let used = code.lines().filter(|line| line.starts_with("pub use ")).map(str::trim);
    let mut names: Vec<String> = shown
        .filter(|line| !line.starts_with("pub use") && !line.starts_with("pub mod"))
        .chain(used)
        .map(|line| format!("  {line}"))
        .collect();
    names.sort();
    names
}

fn methods(part: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for file in files(part) {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let starts = [format!("\nimpl {name} {{\n"), format!("\nimpl<T> {name}<T> {{\n")];
        for (at, start) in starts.iter().flat_map(|start| code.match_indices(start.as_str())) {
            if code[..at].ends_with("#[doc(hidden)]") {
                continue;
            }
            let block = code[at + start.len()..].split("\n}\n").next().unwrap_or_default();
            for method in block.split("\n    pub ").skip(1).chain(block.strip_prefix("    pub ")) {
                if !method.starts_with("(") {
                    let signature = method.split([';', '{']).next().unwrap_or_default();
                    found.push(format!("  pub {}", signature.split_whitespace().collect::<Vec<_>>().join(" ")));
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn files(part: &str) -> Vec<PathBuf> {
    let (file, folder) = (root().join(format!("src/{part}.rs")), root().join(format!("src/{part}")));
    if file.exists() {
        return vec![file];
    }
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|found| found == "rs")).collect();
    files.sort();
    files
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_default()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
