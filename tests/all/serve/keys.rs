//! API keys as an operator makes, lists and revokes them.

use serde_json::{Value, json};

use super::Api;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_kept_as_a_digest() {
    let api = Api::new().await;
    let key = api.key("mina", &["--role", "operator", "--collections", "annotation", "--rate", "20/s", "--expires", "90days"]).await;
    assert!(key.starts_with("cwk_") && key.len() == 4 + 12 + 1 + 64, "{key}");
    let secret = key.rsplit_once('_').unwrap().1;
    let everything: String = api
        .world
        .one("select string_agg(k::text, ' ') || (select string_agg(j::text, ' ') from catchword.journal j) from catchword.api_key k")
        .await;
    assert!(!everything.contains(secret), "{everything}");
    let matches: bool = api.world.one(&format!("select digest = sha256('{key}') from catchword.api_key")).await;
    assert!(matches, "what is kept is the SHA-256 of the whole text");

    let (code, out, _) = api.world.run(&["key", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0);
    assert_eq!(
        (
            &listed[0]["name"],
            &listed[0]["role"],
            &listed[0]["collections"],
            &listed[0]["rate"],
            &listed[0]["state"],
            &listed[0]["last_used_at"]
        ),
        (&json!("mina"), &json!("operator"), &json!(["annotation"]), &json!(20), &json!("live"), &json!(null))
    );
    assert!(!out.contains(secret) && listed[0]["expires_at"].is_string());
    assert_eq!(api.get(&key, "/collections/annotation").await.0, 200);
    crate::common::eventually("it is written down that it was used", async || {
        api.world.one("select last_used_at is not null from catchword.api_key").await
    })
    .await;
    let (_, out, _) = api.world.run(&["key", "list"]).await;
    assert!(out.contains("mina") && out.contains("20/s") && out.contains("last used") && !out.contains(secret), "{out}");

    // one of a name at a time
    let (code, out, error) = api.world.run(&["key", "create", "mina", "--role", "reader"]).await;
    assert!(code == 1 && out.is_empty() && error.contains("key revoke mina"), "{out} {error}");
    assert_eq!(api.world.run(&["key", "create", "mina", "--role", "reader", "--unless-exists"]).await.0, 0);
    assert_eq!(api.world.run(&["key", "revoke", "mina"]).await.0, 0);
    assert_eq!(api.get(&key, "/collections/annotation").await.0, 401, "at once");
    assert_eq!(api.world.run(&["key", "revoke", "mina"]).await.0, 1);
    assert_ne!(api.key("mina", &["--role", "reader"]).await, key);
    let journal: Vec<String> =
        api.world.all("select what || ': ' || detail from catchword.journal where what like 'key %' order by id").await;
    assert_eq!(journal, ["key create: mina, operator of annotation", "key revoke: mina", "key create: mina, reader"]);

    for wrong in [
        &["key", "create", "a b", "--role", "reader"][..],
        &["key", "create", "", "--role", "reader"],
        &["key", "create", "a", "--role", "king"],
        &["key", "create", "a"],
        &["key", "create", "a", "--role", "reader", "--collections", "nobody"],
        &["key", "create", "a", "--role", "reader", "--rate", "0/s"],
        &["key", "create", "a", "--role", "reader", "--expires", "soon"],
    ] {
        let (code, out, error) = api.world.run(wrong).await;
        assert!(code == 2 && out.is_empty() && !error.is_empty(), "{wrong:?}: {out} {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_too_often_is_told_when_to_come_again_and_no_other_pays_for_it() {
    let api = Api::new().await;
    let slow = api.key("slow", &["--role", "reader", "--rate", "1/s"]).await;
    let other = api.key("other", &["--role", "reader"]).await;
    let mut refused = None;
    for _ in 0..5 {
        let response = api
            .world
            .client
            .get(api.at("/api/v1/collections/annotation/audits"))
            .header("authorization", format!("Bearer {slow}"))
            .send()
            .await
            .unwrap();
        if response.status() == 429 {
            refused = Some(response);
        }
    }
    let refused = refused.expect("the third within a second is refused");
    let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(after >= 1);
    let problem: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
    assert!(problem["remedy"].as_str().unwrap().contains("try again"), "{problem}");
    assert_eq!(api.get(&other, "/collections/annotation/audits").await.0, 200);
}
