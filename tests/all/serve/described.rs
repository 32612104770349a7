//! The API is what its description says: schemathesis asks what it allows and what it forbids, and judges the answers.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::Api;
use crate::common::{Layout, start};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/schemathesis/bin/schemathesis");

/// A collection in which any text is a key.
const SQL: &str = "create table word (id text primary key, author text, changed timestamptz default now(), catchword_revision bigint);
    comment on column word.catchword_revision is 'catchword: revision';
    create view word_document as select id as key, catchword_revision as revision, json_build_object('text', author) as body from word;";
const MORE: &str = "\n[[collection]]\nname = \"word\"\ntable = \"word\"\nkey = \"id\"\nview = \"word_document\"\nmapping = \"bystander.json\"\nindex = \"word\"\nscopes = { author = \"author\" }\nperiod = \"changed\"\n";

/// Most is asked of that collection. A rebuild takes seconds, so there is none: what is asked of it is asked of a collection that is not
/// there. Nobody but a person knows which scopes there are.
const SETTINGS: &str = "
[parameters]
collection = \"word\"

# what is too much may also be too large
[checks.negative_data_rejection]
expected-statuses = [\"400\", \"401\", \"403\", \"404\", \"405\", \"409\", \"413\", \"415\", \"429\"]

[[operations]]
include-path-regex = \"/rebuild\"
parameters = { collection = \"nobody\" }

[[operations]]
include-operation-id = \"reindex\"
checks.positive_data_acceptance.expected-statuses = [\"2xx\", \"400\", \"401\", \"403\", \"404\", \"409\"]
";

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_the_answer_is_as_described() {
    assert!(Path::new(TOOL).exists(), "schemathesis is missing; run: scripts/services tools");
    let layout = Layout { quick: "25ms", sql: SQL.into(), more: MORE.into(), ..Layout::default() };
    let api = Api::with(layout, &[]).await;
    let worker = start(&api.world).await;
    let key = api.key("tester", &["--role", "admin", "--rate", "100000/s"]).await;
    api.world.sql("insert into word select n::text, 'mina' from generate_series(1, 20) as n").await;
    std::fs::write(api.world.folder.join("schemathesis.toml"), SETTINGS).unwrap();
    // some seconds in `make test`; `make test-api` asks for more
    let examples = std::env::var("CATCHWORD_API_EXAMPLES").ok();
    let phases = if examples.is_some() { "examples,coverage,fuzzing" } else { "examples,coverage" };
    let output = Command::new(TOOL)
        .args(["run", &api.at("/api/v1/openapi.json")])
        .args(["--header", &format!("Authorization: Bearer {key}")])
        .args(["--checks", "all", "--phases", phases, "--max-examples", examples.as_deref().unwrap_or("1")])
        .args(["--workers", "1", "--request-timeout", "45", "--suppress-health-check", "all"])
        .current_dir(&api.world.folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let logged = api.server.lines().join("\n");
    assert!(!logged.contains("panicked") && !logged.contains("\"level\":\"ERROR\""), "{logged}");
    drop(worker);
}
