//! What a build for users does not have.

use std::path::Path;

use crate::common::World;

/// The names in `crash::point("…")`, from the sources.
fn crash_points() -> Vec<String> {
    let (mut names, mut folders) = (Vec::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).unwrap();
                let calls = text.split("crash::point(\"").skip(1);
                names.extend(calls.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_crash_points_without_their_feature() {
    let points = crash_points();
    assert!(points.len() >= 7, "{points:?}");
    let binary = std::fs::read(env!("CARGO_BIN_EXE_catchword")).unwrap();
    let binary = String::from_utf8_lossy(&binary);
    let has = |text: &str| binary.contains(text);
    assert!(has("CATCHWORD_INDEX_PREFIX"), "a text that is there is found");
    for absent in points.iter().map(String::as_str).chain(["CATCHWORD_CRASH", "CATCHWORD_PANIC"]) {
        assert!(!has(absent), "{absent} is in the binary");
    }

    let world = World::new().await;
    let key = world.annotate("acct:a", "x").await;
    for point in points {
        let ended = world.binary().arg("sync").env("CATCHWORD_CRASH", &point).output().await.unwrap();
        assert!(ended.status.code().is_some(), "{point} is obeyed");
    }
    let ended = world.binary().arg("sync").env("CATCHWORD_PANIC", "after-look").output().await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(world.version("annotation", &key).await, Some(world.revision(&key).await));
    assert_eq!(world.jobs().await, 0);
}
