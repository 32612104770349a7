//! Elasticsearch behind a proxy that cannot bear certain texts: a request that holds one fails, hangs, or has that one item fail.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What becomes of a request with such a text in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The whole request is answered 500.
    Fails,
    /// It is never answered.
    Hangs,
    /// Of a bulk: the item with the text is answered 500, the others are written.
    Item,
}

/// A proxy before the real Elasticsearch.
pub struct Poison {
    pub url: String,
    state: Arc<Proxy>,
}

struct Proxy {
    upstream: String,
    client: reqwest::Client,
    bad: Mutex<Bad>,
}

/// Requests to a path with `path` in it that hold any of `texts`.
struct Bad {
    harm: Harm,
    path: &'static str,
    texts: Vec<String>,
    met: usize,
}

impl Poison {
    /// Before the server that all tests share. Until told otherwise everything passes.
    pub async fn new() -> Poison {
        let upstream = std::env::var("ELASTICSEARCH_URL").unwrap().trim_end_matches('/').to_owned();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let bad = Mutex::new(Bad { harm: Harm::Fails, path: "", texts: Vec::new(), met: 0 });
        let state = Arc::new(Proxy { upstream, client, bad });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass_on).with_state(state.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Poison { url, state }
    }

    /// From now on requests to such a path that hold any of these texts come to harm.
    pub fn bear_no(&self, path: &'static str, texts: &[&str], harm: Harm) {
        *self.state.bad.lock().unwrap() = Bad { harm, path, texts: texts.iter().map(|text| text.to_string()).collect(), met: 0 };
    }

    /// Everything passes.
    pub fn bear_all(&self) {
        self.bear_no("", &[], Harm::Fails);
    }

    /// How many requests came to harm since then.
    pub fn met(&self) -> usize {
        self.state.bad.lock().unwrap().met
    }
}

async fn pass_on(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path_and_query().unwrap().as_str().to_owned();
    let (harm, texts) = proxy.harm_of(&path, &String::from_utf8_lossy(&body));
    match harm {
        Some(Harm::Fails) => return (StatusCode::INTERNAL_SERVER_ERROR, "the server fell over").into_response(),
        Some(Harm::Hangs) => return std::future::pending().await,
        Some(Harm::Item) => return proxy.without(&parts, &path, &String::from_utf8_lossy(&body), &texts).await,
        None => {}
    }
    let (status, answer) = proxy.send(&parts, &path, body.to_vec()).await;
    (status, [("content-type", "application/json"), ("x-elastic-product", "Elasticsearch")], answer).into_response()
}

impl Proxy {
    fn harm_of(&self, path: &str, body: &str) -> (Option<Harm>, Vec<String>) {
        let mut bad = self.bad.lock().unwrap();
        let meets = path.contains(bad.path) && bad.texts.iter().any(|text| body.contains(text.as_str()));
        bad.met += usize::from(meets);
        (meets.then_some(bad.harm), bad.texts.clone())
    }

    async fn send(&self, parts: &axum::http::request::Parts, path: &str, body: Vec<u8>) -> (StatusCode, Body) {
        let method = reqwest::Method::from_bytes(parts.method.as_str().as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("{}{path}", self.upstream)).body(body);
        if let Some(kind) = parts.headers.get("content-type") {
            request = request.header("content-type", kind.to_str().unwrap());
        }
        match request.send().await {
            Ok(answer) => {
                let status = StatusCode::from_u16(answer.status().as_u16()).unwrap();
                (status, Body::from(answer.bytes().await.unwrap()))
            }
            Err(_) => (StatusCode::BAD_GATEWAY, Body::empty()),
        }
    }

    /// Writes the other items, and answers for the bad ones itself, each in its place.
    async fn without(&self, parts: &axum::http::request::Parts, path: &str, body: &str, texts: &[String]) -> Response {
        let lines: Vec<&str> = body.lines().collect();
        let is_bad = |item: &[&str]| texts.iter().any(|text| item.iter().any(|line| line.contains(text.as_str())));
        let good: Vec<&str> = lines.chunks(2).filter(|item| !is_bad(item)).flatten().copied().collect();
        let mut written = Vec::new();
        if !good.is_empty() {
            let (_, answer) = self.send(parts, path, format!("{}\n", good.join("\n")).into_bytes()).await;
            let answer: Value = serde_json::from_slice(&to_bytes(answer, usize::MAX).await.unwrap()).unwrap();
            written = answer["items"].as_array().unwrap().clone();
        }
        let mut written = written.into_iter();
        let items = lines.chunks(2).map(|item| match is_bad(item) {
            false => written.next().unwrap(),
            true => {
                let action: Value = serde_json::from_str(item[0]).unwrap();
                let error = json!({ "type": "illegal_state_exception", "reason": "a field could not be read" });
                json!({ "index": { "_id": action["index"]["_id"], "status": 500, "error": error } })
            }
        });
        let items: Vec<Value> = items.collect();
        let headers = [("content-type", "application/json"), ("x-elastic-product", "Elasticsearch")];
        (headers, json!({ "items": items }).to_string()).into_response()
    }
}
