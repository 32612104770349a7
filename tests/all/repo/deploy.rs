//! What no engine here can run, checked by reading it: docker-compose.yml, the Dockerfile, the Makefile, .ci/run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use catchword::config::{Config, Environment, Tls};
use serde_norway::Value;

/// The profile's services; none: those that start by themselves.
fn services_of(compose: &Value, profile: Option<&str>) -> BTreeSet<String> {
    let services = compose["services"].as_mapping().unwrap().iter();
    let wanted = services.filter(|(_, service)| match (service.get("profiles"), profile) {
        (None, None) => true,
        (Some(profiles), Some(wanted)) => texts(profiles) == [wanted],
        _ => false,
    });
    wanted.map(|(name, _)| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn postgres_18_and_elasticsearch_9_start_by_themselves_and_are_waited_for() {
    let compose = compose();
    assert_eq!(services_of(&compose, None), names(&["postgres", "elasticsearch"]));
    for (service, image) in [
        ("postgres", "postgres:18"),
        ("elasticsearch", "docker.elastic.co/elasticsearch/elasticsearch:${CATCHWORD_ELASTICSEARCH_VERSION:-9."),
    ] {
        let service = &compose["services"][service];
        assert!(service["image"].as_str().unwrap().starts_with(image), "{service:?}");
        let check = &service["healthcheck"];
        assert!(texts(&check["test"]).len() > 1 && check["interval"].is_string() && check["retries"].is_u64(), "{check:?}");
    }
}

#[test]
fn the_profiles_are_watch_app_and_opensearch() {
    let compose = compose();
    assert_eq!(services_of(&compose, Some("watch")), names(&["prometheus", "grafana"]));
    assert_eq!(services_of(&compose, Some("opensearch")), names(&["opensearch"]));
    assert_eq!(services_of(&compose, Some("app")), names(&["migrate-service", "migrate", "api", "worker", "key", "serve"]));
    // nothing is started before what it needs: tables, then triggers, then those who use them
    for (service, needs, when) in [
        ("migrate-service", "postgres", "service_healthy"),
        ("migrate", "elasticsearch", "service_healthy"),
        ("migrate", "migrate-service", "service_completed_successfully"),
        ("api", "migrate", "service_completed_successfully"),
        ("worker", "migrate", "service_completed_successfully"),
        ("key", "migrate", "service_completed_successfully"),
        ("serve", "key", "service_completed_successfully"),
    ] {
        assert_eq!(compose["services"][service]["depends_on"][needs]["condition"], when, "{service}");
    }
}

#[test]
fn every_port_is_bound_to_this_machine() {
    let mut bound = 0;
    for (name, service) in compose()["services"].as_mapping().unwrap() {
        assert!(service.get("network_mode").is_none(), "{name:?}");
        for port in service.get("ports").map(texts).unwrap_or_default() {
            assert!(port.starts_with("127.0.0.1:"), "{name:?} publishes {port}");
            bound += 1;
        }
    }
    assert!(bound >= 5);
}

#[test]
fn mounted_files_and_volumes_exist() {
    let compose = compose();
    for (name, service) in compose["services"].as_mapping().unwrap() {
        for volume in service.get("volumes").map(texts).unwrap_or_default() {
            let source = volume.split(':').next().unwrap();
            let there = if source.starts_with('.') { root().join(source).exists() } else { compose["volumes"].get(source).is_some() };
            assert!(there, "{name:?} mounts {volume}");
        }
    }
}

#[test]
fn the_app_profiles_command_lines_are_ones_that_the_binaries_take() {
    let compose = compose();
    for name in services_of(&compose, Some("app")) {
        let service = &compose["services"][name.as_str()];
        let words = texts(&service["command"]);
        let output = Command::new(binary(&words[0])).args(&words[1..]).arg("--help").env_clear().output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        // without TLS a server of another name is refused, unless it is allowed
        let lookup = |variable: &str| service["environment"].get(variable).map(|value| value.as_str().unwrap().to_owned());
        assert!(Environment::from_lookup(lookup, Tls::Verified).is_err());
        assert!(Environment::from_lookup(lookup, Tls::Insecure).is_ok());
        assert!(words.contains(&"--insecure".to_owned()), "{words:?}");
    }
}

#[test]
fn prometheus_asks_the_worker_and_the_api_where_they_listen() {
    let compose = compose();
    let prometheus: Value = serde_norway::from_str(&read("dashboards/prometheus.yml")).unwrap();
    for (asked, service) in prometheus["scrape_configs"].as_sequence().unwrap().iter().zip(["worker", "api"]) {
        let asked = &asked["dns_sd_configs"][0];
        assert_eq!(texts(&asked["names"]), [service]);
        let command = texts(&compose["services"][service]["command"]);
        let listen = command.iter().skip_while(|word| *word != "--listen").nth(1).unwrap();
        assert_eq!(listen.rsplit(':').next(), Some(asked["port"].as_u64().unwrap().to_string().as_str()));
    }
}

#[test]
fn grafana_finds_the_dashboard_and_its_prometheus() {
    let provider: Value = serde_norway::from_str(&read("dashboards/provisioning/dashboards/catchword.yml")).unwrap();
    let folder = provider["providers"][0]["options"]["path"].as_str().unwrap();
    let mounted = texts(&compose()["services"]["grafana"]["volumes"]);
    assert!(mounted.contains(&format!("./dashboards/catchword.json:{folder}/catchword.json:ro")), "{mounted:?}");
    let sources: Value = serde_norway::from_str(&read("dashboards/provisioning/datasources/prometheus.yml")).unwrap();
    assert_eq!((&sources["datasources"][0]["type"], &sources["datasources"][0]["isDefault"]), (&"prometheus".into(), &true.into()));
}

#[test]
fn prometheus_loads_the_alarms() {
    let prometheus: Value = serde_norway::from_str(&read("dashboards/prometheus.yml")).unwrap();
    let mounted = texts(&compose()["services"]["prometheus"]["volumes"]);
    for file in texts(&prometheus["rule_files"]) {
        assert!(mounted.contains(&format!("./dashboards/{file}:/etc/prometheus/{file}:ro")), "{file} is not mounted: {mounted:?}");
    }
    assert_eq!(texts(&prometheus["rule_files"]), ["alarms.yaml"]);
}

#[test]
fn the_image_is_built_in_stages_and_ends_small_and_without_root() {
    let instructions = dockerfile();
    let last = |wanted: &str| instructions.iter().rev().find(|(name, _)| name == wanted).map(|(_, rest)| rest.clone()).unwrap();
    let stages: Vec<&String> = instructions.iter().filter(|(name, _)| name == "FROM").map(|(_, rest)| rest).collect();
    assert_eq!(stages.len(), 2, "{stages:?}");
    let (build, end) = (stages[0], stages[1]);
    let rust = read("Cargo.toml").split_once("rust-version = \"").unwrap().1.split_once('"').unwrap().0.to_owned();
    assert!(build.starts_with(&format!("rust:{rust}-")) && build.ends_with(" AS build"), "{build}");
    // a newer libc at build time would not be found at run time
    let debian = build.split(['-', ' ']).nth(1).unwrap();
    assert_eq!(*end, format!("debian:{debian}-slim"));
    let user = last("USER");
    assert!(!user.starts_with('0') && !user.starts_with("root"), "{user}");
    let (from, user) = (position(&instructions, "FROM"), position(&instructions, "USER"));
    assert!(user > from, "the user is that of the last stage");
}

#[test]
fn the_image_holds_the_binaries_that_the_build_makes() {
    let build = dockerfile().into_iter().find(|(_, rest)| rest.contains("cargo build")).unwrap().1;
    // the same flags build outside: `--bins` of the whole workspace, with the committed lock file
    assert!(build.contains("cargo build --locked --release --workspace --bins"), "{build}");
    let copied: BTreeSet<String> =
        build.split_whitespace().filter_map(|word| word.strip_prefix("target/release/")).map(str::to_owned).collect();
    let output = Command::new(cargo())
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let targets = metadata["packages"].as_array().unwrap().iter().flat_map(|package| package["targets"].as_array().unwrap());
    let bins = targets
        .filter(|target| target["kind"][0] == "bin")
        .map(|target| target["name"].as_str().unwrap().to_owned())
        // it makes databases and outages of its own: nothing for a server
        .filter(|name| name != "annotation-demo");
    assert_eq!(copied, bins.collect());
    for service in services_of(&compose(), Some("app")) {
        assert!(copied.contains(&texts(&compose()["services"][service.as_str()]["command"])[0]));
    }
}

#[test]
fn the_image_has_a_configuration_that_can_be_read() {
    let instructions = dockerfile();
    let copies = instructions.iter().filter(|(name, rest)| name == "COPY" && !rest.starts_with("--from") && rest != ". .");
    let mut image = BTreeMap::new();
    for (_, rest) in copies {
        let mut words: Vec<&str> = rest.split_whitespace().collect();
        let folder = words.pop().unwrap();
        image.extend(words.into_iter().map(|source| (format!("{folder}{}", source.rsplit('/').next().unwrap()), source)));
    }
    let set = instructions.iter().find(|(name, _)| name == "ENV").unwrap();
    let config = set.1.strip_prefix("CATCHWORD_CONFIG=").unwrap();
    let config = Config::read(&root().join(image[config])).unwrap();
    for collection in config.collections {
        let mapping = format!("/etc/catchword/{}", collection.mapping.file_name().unwrap().to_str().unwrap());
        assert!(image.contains_key(&mapping), "{mapping} is not in the image");
    }
}

#[test]
fn what_the_build_reads_is_sent_to_it() {
    let ignored = read(".dockerignore");
    let ignored: BTreeSet<&str> = ignored.lines().map(|line| line.trim_end_matches('/')).collect();
    for needed in ["Cargo.toml", "Cargo.lock", "build.rs", "src", "migrations", "tests", "examples", "examples/annotations"] {
        assert!(root().join(needed).exists() && !ignored.contains(needed), "{needed}");
    }
    assert!(ignored.contains("target") && ignored.contains(".git") && ignored.contains(".services"));
}

#[test]
fn ci_runs_what_developers_run() {
    let ci = read(".ci/run");
    let makes: Vec<&str> = ci.lines().filter(|line| line.starts_with("make ")).collect();
    assert_eq!(makes[..2], ["make lint", "make test"]);
    let (makefile, readme, contributing) = (read("Makefile"), read("README.md"), read("CONTRIBUTING.md"));
    for target in [
        "help",
        "services",
        "stop",
        "test",
        "test-long",
        "test-faults",
        "test-alarms",
        "test-api",
        "test-console",
        "test-matrix",
        "lint",
        "demo",
    ] {
        assert!(makefile.contains(&format!("\n{target}: ## ")), "make {target}");
    }
    assert!(makefile.contains(".DEFAULT_GOAL := help"));
    for command in makes {
        assert!(readme.contains(command) || contributing.contains(command), "{command} is in no document");
    }
}

fn compose() -> Value {
    let mut compose: Value = serde_norway::from_str(&read("docker-compose.yml")).unwrap();
    compose.apply_merge().unwrap();
    compose
}

/// The instructions, each on one line.
fn dockerfile() -> Vec<(String, String)> {
    let text = read("Dockerfile").replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect()
}

/// Where the last instruction of this name stands.
fn position(instructions: &[(String, String)], wanted: &str) -> usize {
    instructions.iter().rposition(|(name, _)| name == wanted).unwrap()
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_sequence().unwrap_or_else(|| panic!("not a list: {list:?}"));
    list.iter().map(|entry| entry.as_str().unwrap_or_else(|| panic!("not a text: {entry:?}")).to_owned()).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The binaries lie side by side. Cargo builds only its own package's for a test, so the other may have to be built.
fn binary(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_catchword")).with_file_name(name);
    if !path.exists() {
        let built = Command::new(cargo()).args(["build", "--locked", "--workspace", "--bins"]).current_dir(root()).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    path
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
