//! Forty ways to get past the rights, and none of them does.

use reqwest::RequestBuilder;
use serde_json::json;

use super::Api;

const PAUSE: &str = "/api/v1/collections/annotation/pause";

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_past_the_rights_and_no_secret_is_logged() {
    let api = Api::new().await;
    let operator = api.key("mina", &["--role", "operator"]).await;
    let reader = api.key("looker", &["--role", "reader"]).await;
    let writer = api.key("producer", &["--role", "writer"]).await;
    let other = api.key("other", &["--role", "admin", "--collections", "bystander"]).await;
    let expired = api.key("old", &["--role", "admin", "--expires", "1h"]).await;
    let revoked = api.key("gone", &["--role", "admin"]).await;
    api.world.sql("update catchword.api_key set expires_at = now() - interval '1 second' where name = 'old'").await;
    assert_eq!(api.world.run(&["key", "revoke", "gone"]).await.0, 0);
    // a session of a reader, for those who have one
    let signed_in =
        Api::client().post(api.at("/sign-in")).header("origin", api.server.url()).body(format!("key={reader}")).send().await.unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let lines_before: i64 = api.world.one("select count(*) from catchword.journal").await;
    let jobs_before: i64 = api.world.one("select count(*) from catchword.job").await;

    let client = Api::client();
    let post = || client.post(api.at(PAUSE)).header("content-type", "application/json").body(json!({ "reason": "x" }).to_string());
    let bearer = |key: &str| format!("Bearer {key}");
    let from_here = |request: RequestBuilder| request.header("sec-fetch-site", "same-origin");
    let mut one_letter_off = operator.clone();
    let last = if one_letter_off.pop() == Some('0') { '1' } else { '0' };
    one_letter_off.push(last);
    let (id_of_operator, secret_of_reader) = (operator.rsplit_once('_').unwrap().0, reader.rsplit_once('_').unwrap().1);

    let attempts: Vec<(&str, RequestBuilder, &[u16])> = vec![
        ("no key", from_here(post()), &[401]),
        ("an empty key", post().header("authorization", ""), &[401]),
        ("no scheme", post().header("authorization", &operator), &[401]),
        ("another scheme", post().header("authorization", format!("Basic {operator}")), &[401]),
        ("nonsense", post().header("authorization", bearer("nonsense")), &[401]),
        ("one letter off", post().header("authorization", bearer(&one_letter_off)), &[401]),
        ("the id without its secret", post().header("authorization", bearer(&format!("{id_of_operator}_"))), &[401]),
        (
            "one key's id with another's secret",
            post().header("authorization", bearer(&format!("{id_of_operator}_{secret_of_reader}"))),
            &[401],
        ),
        ("a key in capitals", post().header("authorization", bearer(&operator.to_uppercase())), &[401]),
        ("SQL as a key", post().header("authorization", bearer("cwk_' or true --_x")), &[401]),
        ("a revoked key", post().header("authorization", bearer(&revoked)), &[401]),
        ("an expired key", post().header("authorization", bearer(&expired)), &[401]),
        ("two keys", post().header("authorization", bearer(&reader)).header("authorization", bearer(&operator)), &[401]),
        ("two keys on one line", post().header("authorization", format!("{}, {}", bearer(&reader), bearer(&operator))), &[401]),
        ("a key in the address", client.post(api.at(&format!("{PAUSE}?key={operator}"))).header("sec-fetch-site", "same-origin"), &[401]),
        ("a key in another header", from_here(post()).header("x-api-key", &operator), &[401]),
        ("a reader's key", post().header("authorization", bearer(&reader)), &[403]),
        ("a writer's key", post().header("authorization", bearer(&writer)), &[403]),
        ("another collection's key", post().header("authorization", bearer(&other)), &[404]),
        (
            "another collection's key, looking",
            client.get(api.at("/api/v1/collections/annotation")).header("authorization", bearer(&other)),
            &[404],
        ),
        (
            "another collection's key, journal",
            client.get(api.at("/api/v1/journal?collection=annotation")).header("authorization", bearer(&other)),
            &[404],
        ),
        ("a user header that no proxy brought", from_here(post()).header("x-forwarded-user", "admin"), &[401]),
        ("an address that is said to be this machine's", from_here(post()).header("x-forwarded-for", "127.0.0.1"), &[401]),
        ("a made-up cookie", from_here(post()).header("cookie", format!("catchword_session={}", "0".repeat(64))), &[401]),
        ("the key as a cookie", from_here(post()).header("cookie", format!("catchword_session={operator}")), &[401]),
        ("the digest of a session as a cookie", from_here(post()).header("cookie", "catchword_session="), &[401]),
        ("two cookies", from_here(post()).header("cookie", format!("{cookie}; {cookie}")), &[401]),
        ("a reader's session", from_here(post()).header("cookie", &cookie), &[403]),
        ("a session from another site", post().header("cookie", &cookie).header("sec-fetch-site", "cross-site"), &[403]),
        ("a session from a sister site", post().header("cookie", &cookie).header("sec-fetch-site", "same-site"), &[403]),
        ("a session with another origin", post().header("cookie", &cookie).header("origin", "http://evil.example"), &[403]),
        ("a session with no origin's page", post().header("cookie", &cookie).header("origin", "null"), &[403]),
        ("a session and nothing said of where it comes from", post().header("cookie", &cookie), &[403]),
        (
            "signing in from another site",
            client.post(api.at("/sign-in")).header("origin", "http://evil.example").body(format!("key={operator}")),
            &[403],
        ),
        (
            "a method in disguise",
            client.get(api.at(PAUSE)).header("authorization", bearer(&reader)).header("x-http-method-override", "POST"),
            &[405],
        ),
        ("a name that somebody made lead here", post().header("host", "evil.example").header("authorization", bearer(&operator)), &[421]),
        (
            "a body of 100 KB",
            client
                .post(api.at(PAUSE))
                .header("authorization", bearer(&operator))
                .header("content-type", "application/json")
                .body("x".repeat(100_000)),
            &[413],
        ),
        (
            "a path of 20 KB",
            client.get(api.at(&format!("/api/v1/{}", "x".repeat(20_000)))).header("authorization", bearer(&operator)),
            &[414, 431],
        ),
    ];
    let mut tried = attempts.len();
    for (what, request, refusals) in attempts {
        let response = answered(request).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        assert!(refusals.contains(&status), "{what}: {status} {text}");
        assert!(!headers.contains_key("access-control-allow-origin"), "{what}: {headers:?}");
        if status != 431 {
            assert_eq!(headers["content-security-policy"].to_str().unwrap().split(';').next(), Some("default-src 'none'"), "{what}");
            assert_eq!(
                (&headers["x-content-type-options"], &headers["cache-control"]),
                (&"nosniff".parse().unwrap(), &"no-store".parse().unwrap())
            );
        }
    }

    // by raw bytes, as no well-behaved client sends them
    let body = "{\"reason\":\"x\"}";
    let reader_line = format!("authorization: Bearer {reader}\r\n");
    let host = format!("host: {}\r\ncontent-type: application/json\r\n", api.server.address());
    let raw: Vec<(&str, String, &[u16])> = vec![
        (
            "dots in the path",
            format!(
                "POST /api/v1/status/../collections/annotation/pause HTTP/1.1\r\n{host}{reader_line}content-length: 0\r\nconnection: close\r\n\r\n"
            ),
            &[404],
        ),
        (
            "encoded dots",
            format!(
                "POST /assets/%2e%2e/api/v1/collections/annotation/pause HTTP/1.1\r\n{host}sec-fetch-site: same-origin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            &[404, 405],
        ),
        (
            "two slashes",
            format!(
                "POST //api/v1/collections/annotation/pause HTTP/1.1\r\n{host}sec-fetch-site: same-origin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            &[401, 404],
        ),
        (
            "capitals",
            format!(
                "POST /API/V1/collections/annotation/pause HTTP/1.1\r\n{host}sec-fetch-site: same-origin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            &[401, 404],
        ),
        (
            "an open path before it",
            format!(
                "POST /sign-in/../api/v1/collections/annotation/pause HTTP/1.1\r\n{host}sec-fetch-site: same-origin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            &[401, 404],
        ),
        (
            "another host in the first line",
            format!("POST http://evil.example{PAUSE} HTTP/1.1\r\n{host}{reader_line}content-length: 0\r\nconnection: close\r\n\r\n"),
            &[421],
        ),
        (
            "two hosts",
            format!("POST {PAUSE} HTTP/1.1\r\n{host}host: evil.example\r\n{reader_line}content-length: 0\r\nconnection: close\r\n\r\n"),
            &[400],
        ),
        (
            "two lengths",
            format!(
                "POST {PAUSE} HTTP/1.1\r\n{host}{reader_line}content-length: 0\r\ncontent-length: 14\r\nconnection: close\r\n\r\n{body}"
            ),
            &[400],
        ),
        (
            "a length and pieces",
            format!(
                "POST {PAUSE} HTTP/1.1\r\n{host}{reader_line}content-length: 4\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\nPOST {PAUSE} HTTP/1.1\r\n{host}\r\n\r\n"
            ),
            &[400, 403],
        ),
        (
            "a header within a header",
            format!(
                "POST {PAUSE} HTTP/1.1\r\n{host}x: y\nauthorization: Bearer {reader}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            &[400, 403],
        ),
        (
            "a name with a space",
            format!("POST {PAUSE} HTTP/1.1\r\n{host}authorization : Bearer {operator}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
            &[400],
        ),
        ("no host", format!("POST {PAUSE} HTTP/1.0\r\n{reader_line}content-length: 0\r\n\r\n"), &[421]),
        ("a key that was sent one letter at a time", format!("POST {PAUSE} HTTP/1.1\r\n{host}authorization: Bearer"), &[0, 408]),
    ];
    tried += raw.len();
    for (what, request, refusals) in raw {
        let (status, text) = api.raw(request.as_bytes()).await;
        assert!(refusals.contains(&status), "{what}: {status} {text}");
        assert!(!text.contains("HTTP/1.1 200"), "{what}: {text}");
    }
    assert!(tried >= 40, "{tried}");

    // nothing happened, and nothing that opens a door was written down
    assert_eq!(api.world.one::<i64>("select count(*) from catchword.pause").await, 0);
    assert_eq!(api.world.one::<i64>("select count(*) from catchword.journal").await, lines_before);
    assert_eq!(api.world.one::<i64>("select count(*) from catchword.job").await, jobs_before);
    let logged = api.server.lines().join("\n");
    let session = cookie.split_once('=').unwrap().1;
    for secret in [&operator, &reader, &writer, &other, &expired, &revoked, &one_letter_off].map(|key| key.rsplit_once('_').unwrap().1) {
        assert!(!logged.contains(secret), "a secret is in the log: {logged}");
    }
    assert!(!logged.contains(session));
    assert!(logged.contains(PAUSE), "what was tried is in the log: {logged}");
    // and whoever may, may
    let (status, answer) = api.post(&operator, "/collections/annotation/pause", json!({ "reason": "by night" })).await;
    assert_eq!((status, &answer["changed"]), (200, &json!(true)), "{answer}");
    let who: String = api.world.one("select who from catchword.journal where what = 'pause'").await;
    assert!(who.ends_with("(mina)"), "{who}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_some_collections_sees_no_others_anywhere() {
    let api = Api::new().await;
    let all = api.key("all", &["--role", "reader"]).await;
    let some = api.key("some", &["--role", "operator", "--collections", "bystander"]).await;
    api.world.sql("insert into catchword.dead_job (id, name, collection, key, enqueued_at, scheduled_at, expires_at, priority, tag, attempts, last_error, reason)
                   select n, 'index', c, 'k', now(), now(), now(), 1, 't', 5, 'e of ' || c, 'refused' from (values (900001, 'annotation'), (900002, 'bystander')) as v (n, c)").await;
    api.world.run(&["pause", "annotation", "--reason", "secret of annotation"]).await;
    api.world.run(&["pause", "bystander", "--reason", "open"]).await;
    for path in ["/status", "/check", "/collections", "/journal", "/dead-letters"] {
        let (status, seen) = api.get(&all, path).await;
        assert!(status == 200 && seen.to_string().contains("annotation"), "{path}: {status} {seen}");
        let (status, seen) = api.get(&some, path).await;
        assert_eq!(status, 200, "{path}: {seen}");
        assert!(seen.to_string().contains("bystander") && !seen.to_string().contains("annotation"), "{path}: {seen}");
    }
    for path in [
        "/collections/annotation",
        "/collections/annotation/keys/x",
        "/collections/annotation/keys/x/wait",
        "/collections/annotation/dead-letters",
        "/collections/annotation/dead-letters/900001",
        "/collections/bystander/dead-letters/900001",
        "/collections/annotation/audits",
        "/collections/annotation/rebuild",
        "/journal?collection=annotation",
    ] {
        assert_eq!(api.get(&some, path).await.0, 404, "{path}");
    }
    // numbers of others' dead letters are nobody's here
    let (_, replayed) = api.post(&some, "/collections/bystander/dead-letters/replay", json!({ "ids": [900001, 900002] })).await;
    assert_eq!(replayed, json!({ "count": 1 }));
    assert_eq!(api.world.all::<String>("select collection from catchword.dead_job where id > 900000").await, ["annotation"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_read_only_changes_nothing_whatever_the_key() {
    let api = Api::with(crate::common::Layout::default(), &["--read-only"]).await;
    let admin = api.key("root", &["--role", "admin"]).await;
    assert_eq!(api.get(&admin, "/status").await.0, 200);
    for (path, body) in [
        ("/collections/annotation/pause", json!({ "reason": "x" })),
        ("/collections/annotation/resume", json!(null)),
        ("/collections/annotation/jobs", json!({ "keys": ["7b4dbe6e-6f2c-4d3e-8d2b-0d6f3c1b2a3c"] })),
        ("/collections/annotation/dead-letters/replay", json!({ "all": true })),
        ("/collections/annotation/dead-letters/discard", json!({ "all": true })),
        ("/collections/annotation/audits", json!({})),
        ("/collections/annotation/rebuild", json!({})),
    ] {
        let (status, answer) = api.post(&admin, path, body).await;
        assert_eq!(status, 403, "{path}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains("read-only"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_others_can_reach_it_somebody_must_say_who_asks() {
    let world = crate::common::World::new().await;
    let (code, _, said) = world.run(&["serve", "--listen", "0.0.0.0:0"]).await;
    assert!(code == 2 && said.contains("catchword key create"), "{said}");
    let (code, _, said) = world.run(&["serve", "--listen", "0.0.0.0:0", "--open"]).await;
    assert!(code == 2 && said.contains("no API key"), "{said}");
    for words in [
        &["--trust-user-header", "x-user"][..],
        &["--trusted-proxies", "10.0.0.0/8"],
        &["--trust-user-header", "x-user", "--trusted-proxies", "nonsense"],
    ] {
        assert_eq!(world.run(&[&["serve", "--listen", "0.0.0.0:0"][..], words].concat()).await.0, 2, "{words:?}");
    }
    // with a key it starts
    assert_eq!(world.run(&["key", "create", "a", "--role", "reader"]).await.0, 0);
    let server = crate::common::listening(world.binary().args(["serve", "--listen", "0.0.0.0:0"])).await;
    let port = server.address().rsplit_once(':').unwrap().1;
    let status = reqwest::get(format!("http://127.0.0.1:{port}/api/v1/status")).await.unwrap().status();
    assert_eq!(status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_lets_this_machine_look_and_a_proxy_is_believed_from_its_address_alone() {
    let api = Api::with(crate::common::Layout::default(), &["--open"]).await;
    let client = Api::client();
    let status = async |request: RequestBuilder| request.send().await.unwrap().status().as_u16();
    let pause = |api: &Api| {
        client
            .post(api.at(PAUSE))
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/json")
            .body("{\"reason\":\"x\"}")
    };
    assert_eq!(status(client.get(api.at("/api/v1/status"))).await, 200);
    assert_eq!(status(pause(&api)).await, 403, "a reader");
    assert_eq!(
        status(client.get(api.at("/api/v1/status")).header("x-forwarded-for", "10.1.2.3")).await,
        401,
        "a proxy brings it from anywhere"
    );
    assert_eq!(status(client.get(api.at("/api/v1/status")).header("authorization", "Bearer x")).await, 401, "a wrong key is not no key");

    let words = ["--trust-user-header", "X-User", "--trusted-proxies", "127.0.0.0/8", "--proxy-role", "operator", "--base-path", "/cw"];
    let proxied = Api::with(crate::common::Layout::default(), &words).await;
    let at = |path: &str| proxied.at(&format!("/cw{path}"));
    assert_eq!(status(client.get(at("/api/v1/status"))).await, 401, "it names nobody");
    assert_eq!(status(client.get(at("/api/v1/status")).header("x-user", "mina").header("host", "cw.example")).await, 200);
    assert_eq!(status(client.get(at("/api/v1/status")).header("x-user", "a").header("x-user", "b")).await, 401);
    assert_eq!(status(client.get(at("/api/v1/status")).header("x-user", "a b")).await, 401);
    assert_eq!(status(client.get(proxied.at("/api/v1/status")).header("x-user", "mina")).await, 404, "outside the base path");
    let paused = client.post(at(PAUSE)).header("x-user", "mina").header("content-type", "application/json").body("{\"reason\":\"x\"}");
    assert_eq!(status(paused.try_clone().unwrap()).await, 403, "nothing says where it comes from");
    assert_eq!(status(paused.header("sec-fetch-site", "same-origin")).await, 200);
    let who: String = proxied.world.one("select who from catchword.journal where what = 'pause'").await;
    assert!(who.ends_with("(proxy:mina)"), "{who}");

    let elsewhere =
        Api::with(crate::common::Layout::default(), &["--trust-user-header", "X-User", "--trusted-proxies", "10.0.0.0/8"]).await;
    assert_eq!(status(client.get(elsewhere.at("/api/v1/status")).header("x-user", "mina")).await, 401);
}

/// The answer. What is too large is refused before all of it was read, and then the connection may be cut before the client has read that:
/// so it is sent again.
async fn answered(request: RequestBuilder) -> Result<reqwest::Response, reqwest::Error> {
    for _ in 0..20 {
        if let Ok(response) = request.try_clone().unwrap().send().await {
            return Ok(response);
        }
    }
    request.send().await
}
