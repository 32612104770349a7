//! `catchword serve`: the API, who may do what, and whoever tries more.

mod api;
mod console_session;
mod described;
mod down;
mod keys;
mod rights;

use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{Layout, Running, World, serve};

/// A server of the real binary, and its world.
pub struct Api {
    pub world: World,
    pub server: Running,
}

impl Api {
    pub async fn new() -> Api {
        Api::with(Layout::default(), &[]).await
    }

    pub async fn with(layout: Layout, words: &[&str]) -> Api {
        let world = World::with(layout).await;
        let server = serve(&world, words).await;
        Api { world, server }
    }

    /// A new key, as `catchword key create` prints it.
    pub async fn key(&self, name: &str, words: &[&str]) -> String {
        let (code, out, error) = self.world.run(&[&["key", "create", name][..], words].concat()).await;
        assert_eq!(code, 0, "{error}");
        out.trim().to_owned()
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.url())
    }

    /// A client that follows no redirect and keeps no cookie.
    pub fn client() -> reqwest::Client {
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
    }

    /// Asks with a key: the status and the JSON.
    pub async fn get(&self, key: &str, path: &str) -> (u16, Value) {
        let request = self.world.client.get(self.at(&format!("/api/v1{path}"))).header(AUTHORIZATION, format!("Bearer {key}"));
        answer(request).await
    }

    pub async fn post(&self, key: &str, path: &str, body: Value) -> (u16, Value) {
        let request = self.world.client.post(self.at(&format!("/api/v1{path}"))).header(AUTHORIZATION, format!("Bearer {key}"));
        let request = match body {
            Value::Null => request,
            body => request.header("content-type", "application/json").body(body.to_string()),
        };
        answer(request).await
    }

    /// Sends these bytes, and reads to the end: the status, and all.
    pub async fn raw(&self, bytes: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.server.address()).await.unwrap();
        _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer)
    }
}

pub async fn answer(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or_else(|_| json!(text)))
}
