//! Elasticsearch as it is: odd keys, missing aliases, closed indices, credentials, other installations.

use std::time::Duration;

use catchword::elastic::{Answer, Body, Refresh, Target, Write};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{Layout, World, eventually};

/// A collection whose key is a text.
fn with_pages() -> Layout {
    Layout {
        more: "[[collection]]\nname = \"page\"\ntable = \"page\"\nkey = \"path\"\nview = \"page_document\"\nmapping = \"bystander.json\"\ndelay = \"0s\"\n".into(),
        sql: "create table page (path text primary key, text text, catchword_revision bigint);
              comment on column page.catchword_revision is 'catchword: revision';
              create view page_document as select path as key, catchword_revision as revision, json_build_object('text', text) as body from page;"
            .into(),
        ..Layout::default()
    }
}

impl World {
    async fn insert_page(&self, path: &str) {
        sqlx::query("insert into page (path, text) values ($1, $1)").bind(path).execute(&self.pool).await.unwrap();
    }

    /// The sum of all refusals that were charged.
    async fn charged(&self) -> i64 {
        self.one("select coalesce(sum(attempts), 0) + (select count(*) from catchword.dead_job) from catchword.job").await
    }

    async fn indices(&self) -> Vec<String> {
        let (_, listed) = self.http("GET", &format!("/_cat/indices/{}*?format=json&expand_wildcards=all", self.prefix), None).await;
        let mut names: Vec<String> = listed.as_array().unwrap().iter().map(|index| index["index"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_text_of_up_to_512_bytes_is_a_key_from_insert_to_tombstone() {
    let world = World::with(with_pages()).await;
    let mut keys: Vec<String> = [
        "a/b",
        "/",
        "100%",
        "%2F",
        "it's \"quoted\"",
        "new\nline",
        "cr\r\ttab",
        "žluťoučký 🦀",
        " ",
        "  two  ",
        ".",
        "..",
        "_source",
        "a,b",
        "*",
        "\\",
        "#?&=+",
        "\u{1}\u{7f}",
        "-",
        "{\"index\":{}}",
        "null",
        "0",
        "é\u{301}",
    ]
    .map(str::to_owned)
    .into();
    keys.extend(["x".repeat(512), "é".repeat(256), "🦀".repeat(128)]);
    keys.sort();
    for key in &keys {
        world.insert_page(key).await;
    }
    let outcome = world.catchword.drain("test", &["page"]).await.unwrap();
    assert_eq!((outcome.written, outcome.settled), (keys.len() as u64, keys.len() as u64), "{outcome}");
    for key in &keys {
        let revision: i64 =
            sqlx::query_scalar("select catchword_revision from page where path = $1").bind(key).fetch_one(&world.pool).await.unwrap();
        assert_eq!(world.version("page", key).await, Some(revision), "{key:?}");
        assert_eq!(world.source("page", key).await, Some(json!({ "text": key })), "{key:?}");
    }
    assert_eq!(world.found("page").await, keys);

    world.sql("delete from page").await;
    let outcome = world.catchword.drain("test", &["page"]).await.unwrap();
    assert_eq!((outcome.written, outcome.settled), (keys.len() as u64, keys.len() as u64), "{outcome}");
    for key in &keys {
        assert_eq!(world.source("page", key).await, Some(json!({ "catchword_deleted": true })), "{key:?}");
    }
    assert!(world.found("page").await.is_empty());
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_elasticsearch_would_not_take_fails_nobody_else() {
    let world = World::with(with_pages()).await;
    world.insert_page(&"x".repeat(513)).await;
    world.insert_page("fine").await;
    world.catchword.drain("test", &["page"]).await.unwrap();
    assert_eq!(world.found("page").await, ["fine"]);
    let reasons: Vec<String> = world.all("select reason from catchword.dead_job").await;
    assert_eq!(reasons, ["bad_key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_do_not_find_tombstones() {
    let world = World::new().await;
    let (gone, stays) = (world.in_step("acct:a", "one").await, world.in_step("acct:a", "two").await);
    world.sql(&format!("delete from annotation where id = '{gone}'")).await;
    world.catchword.drain("test", &["annotation"]).await.unwrap();
    assert_eq!(world.found("annotation").await, [stays]);
    let (_, all) = world.http("GET", &format!("/{}/_count", world.index("annotation")), None).await;
    assert_eq!(all["count"], json!(2), "the index itself has it");
    let (_, seen) = world.http("GET", &format!("/{}/_count", world.alias("annotation")), None).await;
    assert_eq!(seen["count"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_alias_blocks_its_collection_and_makes_no_surprise_index() {
    let world = World::with(with_pages()).await;
    let before = world.indices().await;
    for alias in [format!("{}-write", world.index("page")), world.alias("page")] {
        world.http("DELETE", &format!("/{}/_alias/{alias}", world.index("page")), None).await;
        world.insert_page(&alias).await;
        let key = world.annotate("acct:a", "hello").await;
        let outcome = world.catchword.sync("test", &[]).await.unwrap();
        let why = outcome.blocked.get("page").unwrap_or_else(|| panic!("{outcome}"));
        assert!(why.contains(&alias) && why.contains("catchword migrate"), "{why}");
        assert_eq!(outcome.blocked.len(), 1, "{outcome}");
        assert!(world.version("annotation", &key).await.is_some(), "the others go on");
        assert_eq!((world.charged().await, world.indices().await), (0, before.clone()));

        let (code, out, err) = world.run(&["migrate"]).await;
        assert_eq!(code, 0, "{err}");
        assert!(out.contains(&format!("alias {alias} put back")), "{out}");
        world.catchword.drain("test", &[]).await.unwrap();
        assert_eq!(world.one::<i64>("select count(*) from catchword.job where collection = 'page'").await, 0);
    }

    // it vanishes after it was asked for: the bulk itself refuses to make an index of that name
    let nowhere = Target::new(format!("{}nowhere-000001", world.prefix));
    let body = Body::Document("{}".into());
    let writes = [Write { key: "k", version: 2, body }];
    let answers = world.catchword.elastic().bulk(&nowhere, &writes, Refresh::No, Duration::from_secs(5)).await;
    assert!(matches!(&answers[..], [Answer::Blocked(_)]), "{answers:?}");
    assert_eq!(world.indices().await, before);
    world.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_or_write_blocked_index_charges_nobody_and_recovers() {
    let world = World::with(with_pages()).await;
    let index = world.index("page");
    for (n, (fault, cure, body)) in
        [("_block/write", "_settings", Some(json!({ "index.blocks.write": null }))), ("_close", "_open", None)].into_iter().enumerate()
    {
        let method = if n == 0 { ("PUT", "PUT") } else { ("POST", "POST") };
        let (status, said) = world.http(method.0, &format!("/{index}/{fault}"), None).await;
        assert_eq!(status, 200, "{said}");
        world.insert_page(fault).await;
        let key = world.annotate("acct:a", "hello").await;
        let outcome = world.catchword.sync("test", &[]).await.unwrap();
        assert!(outcome.blocked.contains_key("page"), "{fault}: {outcome}");
        assert_eq!((outcome.blocked.len(), &outcome.breaker), (1, &None), "{outcome}");
        assert!(world.version("annotation", &key).await.is_some(), "{fault}: the others go on");
        // as often as it likes: nothing is charged
        for _ in 0..6 {
            world.sql("update catchword.job set scheduled_at = now() where collection = 'page'").await;
            world.catchword.sync("test", &["page"]).await.unwrap();
        }
        assert_eq!(world.charged().await, 0, "{fault}");

        let (status, said) = world.http(method.1, &format!("/{index}/{cure}"), body).await;
        assert_eq!(status, 200, "{said}");
        eventually("it recovers", async || {
            world.sql("update catchword.job set scheduled_at = now() where collection = 'page'").await;
            let outcome = world.catchword.drain("test", &["page"]).await.unwrap();
            world.one::<i64>("select count(*) from catchword.job where collection = 'page'").await == 0 && outcome.blocked.is_empty()
        })
        .await;
        assert!(world.version("page", fault).await.is_some());
    }
    world.noise_is_untouched().await;
}

/// A server that answers everything with 401 and keeps what it was sent.
async fn deaf_server() -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut bytes = vec![0; 64 << 10];
                while let Ok(n @ 1..) = client.read(&mut bytes).await {
                    _ = sender.send(String::from_utf8_lossy(&bytes[..n]).into_owned());
                    let body = r#"{"error":{"type":"security_exception","reason":"unable to authenticate user [mina]"},"status":401}"#;
                    let head =
                        format!("HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
                    _ = client.write_all(format!("{head}{body}").as_bytes()).await;
                }
            });
        }
    });
    (address, receiver)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_said_and_never_shown() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "hello").await;
    let (address, mut requests) = deaf_server().await;
    // base64 of mina:s3cr3t-w0rd
    let (secret, encoded) = ("s3cr3t-w0rd", "bWluYTpzM2NyM3QtdzByZA==");
    for words in [&["sync"][..], &["status"], &["explain", "annotation", &key], &["migrate"], &["migrate", "--dry-run"]] {
        for level in ["debug", "trace"] {
            let output = world
                .binary()
                .env("ELASTICSEARCH_URL", format!("http://mina:{secret}@{address}"))
                .env("CATCHWORD_LOG", level)
                .args(words)
                .output()
                .await
                .unwrap();
            let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(!said.contains(secret) && !said.contains(encoded), "{words:?}: {said}");
            assert!(words.contains(&"--dry-run") || said.contains("security_exception"), "{words:?} says what is wrong: {said}");
        }
    }
    let sent = requests.recv().await.unwrap();
    assert!(sent.contains(&format!("authorization: Basic {encoded}")), "it was sent: {sent}");
    assert_eq!(world.charged().await, 0);

    // and not by Debug
    let get = |name: &str| match name {
        "ELASTICSEARCH_URL" => Some(format!("http://mina:{secret}@{address}")),
        "DATABASE_URL" => Some(format!("postgres://mina:{secret}@localhost/x")),
        _ => None,
    };
    let given = catchword::config::Environment::from_lookup(get, catchword::config::Tls::Verified).unwrap();
    let opened = catchword::Catchword::open(world.catchword.config().clone(), &given).unwrap();
    let shown = format!("{given:?} {:?} {:?}", opened.elastic(), opened.config());
    assert!(!shown.contains(secret) && !shown.contains(encoded), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_in_the_environment_is_ignored() {
    let world = World::new().await;
    let key = world.annotate("acct:a", "hello").await;
    let mut binary = world.binary();
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        binary.env(name, "http://127.0.0.1:1");
    }
    let output = binary.args(["sync", "--drain"]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(world.version("annotation", &key).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_installation_is_never_written_to() {
    let production = World::new().await;
    let theirs = production.in_step("acct:a", "production").await;
    let staging = World::new().await;
    let key = staging.annotate("acct:b", "staging").await;

    // staging's own index had the same name in its own cluster; now it is pointed at production's
    let index = production.index("annotation");
    staging.sql(&format!("update catchword.collection set targets = '{{{index}}}' where name = 'annotation'")).await;
    let run = async |words: &[&str]| {
        let output = staging.binary().env("CATCHWORD_INDEX_PREFIX", &production.prefix).args(words).output().await.unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), said)
    };
    let (code, said) = run(&["sync", "annotation"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("index {index} belongs to installation ")), "{said}");
    assert!(said.contains("check ELASTICSEARCH_URL and DATABASE_URL"), "{said}");
    let (code, said) = run(&["worker", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("belongs to installation "), "{said}");
    let (code, said) = run(&["migrate"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("belongs to installation "), "{said}");

    assert_eq!(staging.charged().await, 0);
    assert_eq!(staging.jobs().await, 1, "its job waits for somebody to fix it");
    assert_eq!(production.found("annotation").await, [theirs]);
    assert_eq!(production.version("annotation", &key).await, None);
    production.noise_is_untouched().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_followed_by_nobody() {
    let world = World::new().await;
    world.annotate("acct:a", "not for others").await;
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = format!("http://{}", elsewhere.local_addr().unwrap());
    let redirector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", redirector.local_addr().unwrap());
    let head = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}/elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = redirector.accept().await {
            let mut part = [0; 4096];
            _ = stream.read(&mut part).await;
            _ = stream.write_all(head.as_bytes()).await;
        }
    });
    for words in [&["sync"][..], &["status"], &["doctor"], &["audit", "annotation"]] {
        let output = world.binary().env("ELASTICSEARCH_URL", &url).args(words).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(&format!("redirects to {target}, which is not followed")), "{words:?}: {said}");
    }
    let came = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(came.is_err(), "somebody followed the redirect");
    assert_eq!((world.charged().await, world.jobs().await), (0, 1));
}
