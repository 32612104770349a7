//! A real Chromium without a screen, driven by WebDriver: the few calls that the tests need, as JSON over HTTP.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::common::eventually;

/// What an element is called in the answers of WebDriver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Does the browser run scripts?
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scripts {
    On,
    Off,
}

/// A browser with one window.
pub struct Browser {
    session: String,
    client: reqwest::Client,
    /// Where the server is.
    pub home: String,
    folder: PathBuf,
    _driver: Child,
}

impl Browser {
    /// Starts one that knows nothing of before.
    pub async fn start(home: &str, scripts: Scripts) -> Browser {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("the tests of the console need chromedriver and chromium; run: scripts/services tools ({error})")
            });
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("chromedriver says on which port it listens");
            if let Some(port) = line.split("successfully on port ").nth(1) {
                break port.trim_end_matches('.').to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(120)).build().unwrap();
        let folder = std::env::temp_dir().join(format!("catchword-browser-{}", Uuid::new_v4().simple()));
        let mut options = json!({
            "binary": chromium(),
            "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions", "--no-first-run", "--disable-quic",
                "--hide-scrollbars", "--no-proxy-server", "--font-render-hinting=none", format!("--user-data-dir={}", folder.display()),
            ],
        });
        if scripts == Scripts::Off {
            options["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
        } } });
        let url = format!("http://127.0.0.1:{port}/session");
        let answer: Value = client.post(&url).json_body(&wanted).send().await.unwrap().json_body().await;
        let id = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("chromium does not start: {answer}"));
        Browser { session: format!("{url}/{id}"), client, home: home.to_owned(), folder, _driver: driver }
    }

    async fn ask(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> Result<Value, Value> {
        let request = self.client.request(method, format!("{}{path}", self.session));
        let request = match &body {
            Some(body) => request.json_body(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let (fine, answer) = (response.status().is_success(), response.json_body().await);
        if fine { Ok(answer["value"].clone()) } else { Err(answer["value"].clone()) }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ask(reqwest::Method::POST, path, Some(body)).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(reqwest::Method::GET, path, None).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Calls Chromium's own protocol.
    pub async fn chromium(&self, command: &str, params: Value) -> Value {
        self.post("/goog/cdp/execute", json!({ "cmd": command, "params": params })).await
    }

    /// Opens a page of the server.
    pub async fn open(&self, path: &str) {
        self.post("/url", json!({ "url": format!("{}{path}", self.home) })).await;
    }

    /// Where it is: path and query.
    pub async fn place(&self) -> String {
        self.get("/url").await.as_str().unwrap().trim_start_matches(&self.home).to_owned()
    }

    /// As wide as a desk's screen or a phone's.
    pub async fn screen(&self, width: u32, height: u32) {
        let mobile = width < 600;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.chromium("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// `light` or `dark`.
    pub async fn colours(&self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.chromium("Emulation.setEmulatedMedia", features).await;
    }

    async fn found(&self, css: &str) -> Option<String> {
        let found = self.ask(reqwest::Method::POST, "/element", Some(json!({ "using": "css selector", "value": css }))).await;
        Some(found.ok()?[ELEMENT].as_str()?.to_owned())
    }

    async fn element(&self, css: &str) -> String {
        match self.found(css).await {
            Some(element) => element,
            None => panic!("there is no {css} on {}: {}", self.place().await, self.text("body").await),
        }
    }

    pub async fn has(&self, css: &str) -> bool {
        self.found(css).await.is_some()
    }

    /// What a person reads there; empty: there is no such thing, or it was replaced just now.
    pub async fn text(&self, css: &str) -> String {
        let Some(element) = self.found(css).await else { return String::new() };
        let text = self.ask(reqwest::Method::GET, &format!("/element/{element}/text"), None).await;
        text.ok().and_then(|text| Some(text.as_str()?.to_owned())).unwrap_or_default()
    }

    pub async fn page(&self) -> String {
        self.text("body").await
    }

    pub async fn source(&self) -> String {
        self.get("/source").await.as_str().unwrap().to_owned()
    }

    pub async fn attribute(&self, css: &str, name: &str) -> String {
        let element = self.element(css).await;
        self.get(&format!("/element/{element}/attribute/{name}")).await.as_str().unwrap_or_default().to_owned()
    }

    /// A page that renews itself may replace what is about to be clicked: then the new one is.
    pub async fn click(&self, css: &str) {
        for _ in 0..5 {
            let element = self.element(css).await;
            match self.ask(reqwest::Method::POST, &format!("/element/{element}/click"), Some(json!({}))).await {
                Ok(_) => return,
                Err(error) if error["error"] == "stale element reference" => {}
                Err(error) => panic!("{css} cannot be clicked: {error}"),
            }
        }
        panic!("{css} was replaced again and again");
    }

    /// The link or button with these words.
    pub async fn press(&self, words: &str) {
        let path = format!("//*[self::a or self::button or self::summary][contains(normalize-space(.), \"{words}\")]");
        for _ in 0..5 {
            let found = self.ask(reqwest::Method::POST, "/element", Some(json!({ "using": "xpath", "value": path }))).await;
            let Ok(found) = found else { panic!("there is no \"{words}\" on {}: {}", self.place().await, self.page().await) };
            let element = found[ELEMENT].as_str().unwrap();
            match self.ask(reqwest::Method::POST, &format!("/element/{element}/click"), Some(json!({}))).await {
                Ok(_) => return,
                Err(error) if error["error"] == "stale element reference" => {}
                Err(error) => panic!("\"{words}\" cannot be pressed: {error}"),
            }
        }
        panic!("\"{words}\" was replaced again and again");
    }

    pub async fn offers(&self, words: &str) -> bool {
        let path = format!("//main//*[self::a or self::button][contains(normalize-space(.), \"{words}\")]");
        self.ask(reqwest::Method::POST, "/element", Some(json!({ "using": "xpath", "value": path }))).await.is_ok()
    }

    pub async fn fill(&self, css: &str, text: &str) {
        let element = self.element(css).await;
        self.post(&format!("/element/{element}/clear"), json!({})).await;
        self.post(&format!("/element/{element}/value"), json!({ "text": text })).await;
    }

    /// Presses keys where the focus is.
    pub async fn keys(&self, keys: &str) {
        let actions: Vec<Value> =
            keys.chars().flat_map(|key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]).collect();
        self.post("/actions", json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] })).await;
    }

    /// What a script of the test's own says.
    pub async fn script(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Waits until these words are there, as somebody who looks at the screen does.
    pub async fn see(&self, css: &str, words: &str) {
        eventually(&format!("{css} says: {words}"), async || self.text(css).await.contains(words)).await;
    }

    /// What the page itself complained of, such as what its own policy refused.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({ "type": "browser" })).await;
        let lines = log.as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The addresses that were asked for since the last call.
    pub async fn asked_for(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({ "type": "performance" })).await;
        let lines = log.as_array().cloned().unwrap_or_default();
        let events = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line["message"].as_str()?).ok());
        let sent = events.filter(|event| event["message"]["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| Some(event["message"]["params"]["request"]["url"].as_str()?.to_owned())).collect()
    }

    /// A picture of the whole page, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        let size = self.script("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]").await;
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let shot = self.chromium("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true, "clip": clip })).await;
        decoded(shot["data"].as_str().unwrap())
    }
}

/// Ends the browser with its driver, also after a panic.
impl Drop for Browser {
    fn drop(&mut self) {
        let (session, folder) = (self.session.clone(), self.folder.clone());
        let ended = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            // a client of its own: the other one's connections live in the runtime of the test, which may be ending
            let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
            // the request's own clock needs the runtime, too
            _ = runtime.block_on(async { client.delete(session).send().await });
            _ = std::fs::remove_dir_all(folder);
        });
        _ = ended.join();
    }
}

fn chromium() -> &'static str {
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = known.into_iter().find(|path| std::path::Path::new(path).exists());
    found.unwrap_or_else(|| panic!("the tests of the console need chromium; run: scripts/services tools"))
}

/// Base64, which is all that stands between a picture and its bytes.
fn decoded(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = four.iter().fold(0_u32, |bits, c| bits << 6 | u32::from(value(*c))) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// JSON by hand: reqwest has its feature for it switched off here.
trait JsonRequest {
    fn json_body(self, body: &Value) -> Self;
}

impl JsonRequest for reqwest::RequestBuilder {
    fn json_body(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }
}

trait JsonResponse {
    async fn json_body(self) -> Value;
}

impl JsonResponse for reqwest::Response {
    async fn json_body(self) -> Value {
        let text = self.text().await.unwrap();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
    }
}
