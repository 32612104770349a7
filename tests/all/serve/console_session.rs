//! Signing in: a cookie that no script reads and no other site sends, and that ends with its key.

use reqwest::{Response, StatusCode};

use super::Api;

async fn sign_in(api: &Api, key: &str, more: &str) -> Response {
    let body = format!("key={key}{more}");
    let request = Api::client()
        .post(api.at("/sign-in"))
        .header("origin", api.server.url())
        .header("content-type", "application/x-www-form-urlencoded");
    request.body(body).send().await.unwrap()
}

fn cookie(response: &Response) -> String {
    response.headers()["set-cookie"].to_str().unwrap().to_owned()
}

async fn status_with(api: &Api, cookie: &str) -> u16 {
    let pair = cookie.split(';').next().unwrap();
    Api::client().get(api.at("/api/v1/status")).header("cookie", pair).send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_a_cookie_that_ends_with_its_key_and_when_one_signs_out() {
    let api = Api::new().await;
    let key = api.key("mina", &["--role", "operator"]).await;
    let first = sign_in(&api, &key, "&next=/collections/annotation").await;
    assert_eq!((first.status(), first.headers()["location"].to_str().unwrap()), (StatusCode::SEE_OTHER, "/collections/annotation"));
    let first = cookie(&first);
    assert!(
        first.contains("HttpOnly") && first.contains("SameSite=Strict") && first.contains("Path=/") && !first.contains("Secure"),
        "{first}"
    );
    assert!(!first.contains(&key), "{first}");
    assert_eq!(status_with(&api, &first).await, 200);
    assert_eq!(status_with(&api, &format!("{}x", first.split(';').next().unwrap())).await, 401);

    // another session of the same key, by TLS
    let by_tls = Api::client()
        .post(api.at("/sign-in"))
        .header("origin", api.server.url())
        .header("x-forwarded-proto", "https")
        .body(format!("key={key}"));
    let second = cookie(&by_tls.send().await.unwrap());
    assert!(second.contains("; Secure"), "{second}");
    assert_ne!(first, second);
    let out =
        Api::client().post(api.at("/sign-out")).header("sec-fetch-site", "same-origin").header("cookie", first.split(';').next().unwrap());
    let out = out.send().await.unwrap();
    assert!(out.status() == StatusCode::SEE_OTHER && cookie(&out).contains("Max-Age=0"));
    assert_eq!((status_with(&api, &first).await, status_with(&api, &second).await), (401, 200));
    assert_eq!(api.world.run(&["key", "revoke", "mina"]).await.0, 0);
    assert_eq!(status_with(&api, &second).await, 401, "it ends with its key");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_session_is_sent_to_sign_in_and_nowhere_else() {
    let api = Api::new().await;
    let key = api.key("mina", &["--role", "reader"]).await;
    let page = Api::client().get(api.at("/collections/annotation?x=1")).send().await.unwrap();
    assert_eq!(
        (page.status(), page.headers()["location"].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/sign-in?next=%2Fcollections%2Fannotation%3Fx%3D1")
    );
    for (next, place) in
        [("", "/"), ("&next=//evil.example", "/"), ("&next=https://evil.example", "/"), ("&next=/%5Cevil", "/"), ("&next=/a?b", "/a?b")]
    {
        let signed_in = sign_in(&api, &key, next).await;
        assert_eq!(signed_in.headers()["location"].to_str().unwrap(), place, "{next}");
    }
    let refused = sign_in(&api, "wrong", "").await;
    assert!(
        refused.headers()["location"].to_str().unwrap().starts_with("/sign-in?refused=1") && !refused.headers().contains_key("set-cookie")
    );
    // trying is slow
    let mut too_many = 0;
    for _ in 0..40 {
        too_many += u32::from(sign_in(&api, "wrong", "").await.status() == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(too_many > 0);
}
