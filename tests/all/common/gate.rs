//! A TCP gate in front of a server: it can pass, refuse, hold requests back and let them through later, or keep the answers.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    /// Connections are closed at once.
    Refuse,
    /// A request that contains this text is kept until the gate passes again.
    Hold(&'static str),
    /// A connection that has sent these texts, one after the other, never hears anything again; what it sends goes through.
    Swallow(&'static [&'static str]),
}

pub struct Gate {
    pub url: String,
    mode: watch::Sender<Mode>,
    requests: watch::Receiver<Requests>,
    passed: Passed,
}

/// When each request went through, the oldest first.
type Passed = Arc<Mutex<Vec<Instant>>>;

/// Requests that were held back.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    held: usize,
    unanswered: usize,
    swallowed: usize,
}

impl Gate {
    /// A gate in front of `upstream` ("http://127.0.0.1:port").
    pub async fn before(upstream: &str) -> Gate {
        let upstream: Arc<str> = upstream.trim_start_matches("http://").trim_end_matches('/').into();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (mode, seen) = watch::channel(Mode::Pass);
        let (counted, requests) = watch::channel(Requests::default());
        let counted = Arc::new(counted);
        let passed = Passed::default();
        let noted = passed.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, upstream.clone(), seen.clone(), counted.clone(), noted.clone()));
            }
        });
        Gate { url, mode, requests, passed }
    }

    pub fn refuse(&self) {
        self.mode.send_replace(Mode::Refuse);
    }

    /// Holds back requests that contain this text (a part of their path), and lets the others through.
    pub fn hold(&self, text: &'static str) {
        self.mode.send_replace(Mode::Hold(text));
    }

    /// Lets everything through, and keeps the answer to the last of these texts from a connection that has sent them in this order.
    pub fn swallow(&self, texts: &'static [&'static str]) {
        self.mode.send_replace(Mode::Swallow(texts));
    }

    /// Waits until the server has answered a request, and nobody heard it.
    pub async fn swallowed_something(&self) {
        self.requests.clone().wait_for(|requests| requests.swallowed > 0).await.unwrap();
    }

    pub fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }

    /// When each request went through since this was last asked, the oldest first.
    pub fn passed(&self) -> Vec<Instant> {
        std::mem::take(&mut self.passed.lock().unwrap())
    }

    /// Waits until the server has answered everything that was held back and let through.
    pub async fn late_requests_are_answered(&self) {
        self.requests.clone().wait_for(|requests| requests.unanswered == 0).await.unwrap();
    }

    /// Waits until a request is being held back.
    pub async fn holds_something(&self) {
        self.requests.clone().wait_for(|requests| requests.held > 0).await.unwrap();
    }
}

async fn connection(
    client: TcpStream,
    upstream: Arc<str>,
    mut mode: watch::Receiver<Mode>,
    counted: Arc<watch::Sender<Requests>>,
    passed: Passed,
) {
    if *mode.borrow() == Mode::Refuse {
        return;
    }
    let Ok(mut server) = TcpStream::connect(&*upstream).await else {
        return;
    };
    let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let (mut client, mut unanswered, mut sent, mut swallowing) = (Some(client), 0, 0, false);
    while client.is_some() || unanswered > 0 {
        let now = *mode.borrow_and_update();
        tokio::select! {
            _ = mode.changed() => if *mode.borrow() == Mode::Refuse { break },
            read = read(&mut client, &mut from_client) => {
                // a client that has given up is no reason to stop: what it sent goes through
                let Some(n) = read else { client = None; continue };
                if let Mode::Swallow(texts) = now {
                    sent += usize::from(texts.get(sent).is_some_and(|text| contains(&from_client[..n], text)));
                    swallowing = sent == texts.len();
                }
                if let Mode::Hold(text) = now
                    && contains(&from_client[..n], text)
                {
                    unanswered += 1;
                    counted.send_modify(|requests| { requests.held += 1; requests.unanswered += 1 });
                    let released = mode.wait_for(|mode| !matches!(mode, Mode::Hold(_))).await.map(|mode| *mode);
                    counted.send_modify(|requests| requests.held -= 1);
                    if !matches!(released, Ok(Mode::Pass)) { break }
                }
                // a body of JSON never begins like this
                if [&b"GET /"[..], b"POST /", b"PUT /", b"HEAD /"].iter().any(|method| from_client[..n].starts_with(method)) {
                    passed.lock().unwrap().push(Instant::now());
                }
                if server.write_all(&from_client[..n]).await.is_err() { break }
            }
            read = server.read(&mut from_server) => {
                let Ok(n @ 1..) = read else { break };
                counted.send_modify(|requests| requests.unanswered -= unanswered);
                unanswered = 0;
                if swallowing {
                    counted.send_modify(|requests| requests.swallowed += 1);
                    continue;
                }
                if let Some(client) = &mut client {
                    _ = client.write_all(&from_server[..n]).await;
                }
            }
        }
    }
    counted.send_modify(|requests| requests.unanswered -= unanswered);
}

async fn read(client: &mut Option<TcpStream>, buffer: &mut [u8]) -> Option<usize> {
    match client {
        Some(client) => client.read(buffer).await.ok().filter(|n| *n > 0),
        None => std::future::pending().await,
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
