//! The API is what its description says: schemathesis asks what it allows and what it forbids, and judges the answers.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::Api;
use crate::common::{Layout, start};

const TOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools/schemathesis/bin/schemathesis");

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_the_answer_is_as_described() {
    assert!(Path::new(TOOL).exists(), "schemathesis is missing; run: scripts/services tools");
    let api = Api::with(Layout { quick: "25ms", ..Layout::default() }, &[]).await;
    let worker = start(&api.world).await;
    let key = api.key("tester", &["--role", "admin", "--rate", "100000/s"]).await;
    for n in 0..3 {
        api.world.annotate("acct:a", &format!("text {n}")).await;
    }
    // some seconds in `make test`; `make test-api` asks for more
    let examples = std::env::var("CATCHWORD_API_EXAMPLES").unwrap_or_else(|_| "2".into());
    let phases = if examples == "2" { "examples,coverage" } else { "examples,coverage,fuzzing" };
    let output = Command::new(TOOL)
        .args(["run", &api.at("/api/v1/openapi.json")])
        .args(["--header", &format!("Authorization: Bearer {key}")])
        .args(["--checks", "all", "--phases", phases, "--max-examples", &examples])
        .args(["--workers", "2", "--request-timeout", "45", "--suppress-health-check", "all"])
        .current_dir(&api.world.folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("not_a_server_error") || said.contains("passed"), "{said}");
    let logged = api.server.lines().join("\n");
    assert!(!logged.contains("panicked") && !logged.contains("\"level\":\"ERROR\""), "{logged}");
    drop(worker);
}
