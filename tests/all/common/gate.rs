//! A TCP gate in front of a server: it can pass, refuse, reset, hold requests back and let them through later; keep the answers, delay
//! them, cut them short, or let them trickle.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
    /// A connection that sends something is reset, and what it sent is lost.
    Reset,
    /// Every answer comes later by this.
    Delay(Duration),
    /// Of every answer so many bytes come, then the connection ends.
    Cut(usize),
    /// So many bytes of an answer come in a tenth of a second.
    Trickle(usize),
}

pub struct Gate {
    pub url: String,
    mode: watch::Sender<Mode>,
    requests: watch::Receiver<Requests>,
    traffic: Arc<Mutex<Traffic>>,
}

/// What went through, for whoever asks.
#[derive(Default)]
struct Traffic {
    /// When each request went through, the oldest first.
    passed: Vec<Instant>,
    /// How many of them were the probe of an open breaker.
    probes: usize,
    /// Bytes that went through to the server.
    bytes: usize,
    /// Requests without an answer yet, and the most there were at the same moment.
    in_flight: usize,
    most_in_flight: usize,
}

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
        let traffic = Arc::<Mutex<Traffic>>::default();
        let noted = traffic.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, upstream.clone(), seen.clone(), counted.clone(), noted.clone()));
            }
        });
        Gate { url, mode, requests, traffic }
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

    pub fn reset(&self) {
        self.mode.send_replace(Mode::Reset);
    }

    /// Delays every answer.
    pub fn delay(&self, by: Duration) {
        self.mode.send_replace(Mode::Delay(by));
    }

    /// Ends every answer after so many bytes.
    pub fn cut(&self, after: usize) {
        self.mode.send_replace(Mode::Cut(after));
    }

    /// Lets so many bytes of an answer through in a tenth of a second.
    pub fn trickle(&self, bytes: usize) {
        self.mode.send_replace(Mode::Trickle(bytes));
    }

    /// When each request went through since this was last asked, the oldest first.
    pub fn passed(&self) -> Vec<Instant> {
        std::mem::take(&mut self.traffic.lock().unwrap().passed)
    }

    /// How often it was probed whether the breaker of the cluster can close.
    pub fn probes(&self) -> usize {
        self.traffic.lock().unwrap().probes
    }

    /// The bytes that went through to the server since this was last asked.
    pub fn bytes(&self) -> usize {
        std::mem::take(&mut self.traffic.lock().unwrap().bytes)
    }

    /// The most requests that were on their way at the same moment since this was last asked.
    pub fn most_in_flight(&self) -> usize {
        let mut traffic = self.traffic.lock().unwrap();
        let now = traffic.in_flight;
        std::mem::replace(&mut traffic.most_in_flight, now)
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

/// The request of a connection that has no answer yet: one at a time, as HTTP/1 has it.
struct InFlight(Arc<Mutex<Traffic>>);

impl InFlight {
    fn begin(traffic: &Arc<Mutex<Traffic>>) -> InFlight {
        let mut noted = traffic.lock().unwrap();
        noted.passed.push(Instant::now());
        noted.in_flight += 1;
        noted.most_in_flight = noted.most_in_flight.max(noted.in_flight);
        InFlight(traffic.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

async fn connection(
    client: TcpStream,
    upstream: Arc<str>,
    mut mode: watch::Receiver<Mode>,
    counted: Arc<watch::Sender<Requests>>,
    traffic: Arc<Mutex<Traffic>>,
) {
    if *mode.borrow() == Mode::Refuse {
        return;
    }
    let Ok(mut server) = TcpStream::connect(&*upstream).await else {
        return;
    };
    let (mut from_client, mut from_server) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let (mut client, mut unanswered, mut sent, mut swallowing) = (Some(client), 0, 0, false);
    let (mut in_flight, mut answered) = (None, 0);
    while client.is_some() || unanswered > 0 {
        let now = *mode.borrow_and_update();
        // also one that was just being made when the gate began to refuse
        if now == Mode::Refuse {
            break;
        }
        tokio::select! {
            _ = mode.changed() => if *mode.borrow() == Mode::Refuse { break },
            read = read(&mut client, &mut from_client) => {
                // a client that has given up is no reason to stop: what it sent goes through
                let Some(n) = read else { client = None; in_flight = None; continue };
                if now == Mode::Reset {
                    // with nothing lingering, a close is a reset
                    if let Some(client) = &client { client.set_zero_linger().unwrap() }
                    break;
                }
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
                    (in_flight, answered) = (Some(InFlight::begin(&traffic)), 0);
                }
                {
                    let mut noted = traffic.lock().unwrap();
                    noted.probes += usize::from(contains(&from_client[..n], "catchword-cluster-probe"));
                    noted.bytes += n;
                }
                if server.write_all(&from_client[..n]).await.is_err() { break }
            }
            read = server.read(&mut from_server) => {
                let Ok(n @ 1..) = read else { break };
                counted.send_modify(|requests| requests.unanswered -= unanswered);
                unanswered = 0;
                in_flight = None;
                if swallowing {
                    counted.send_modify(|requests| requests.swallowed += 1);
                    continue;
                }
                if let Some(client) = &mut client
                    && !answer(client, &from_server[..n], now, answered).await
                {
                    break;
                }
                answered += n;
            }
        }
    }
    drop(in_flight);
    counted.send_modify(|requests| requests.unanswered -= unanswered);
}

/// Passes on a piece of an answer, of which so many bytes have come before. False: the connection ends here.
async fn answer(client: &mut TcpStream, bytes: &[u8], mode: Mode, before: usize) -> bool {
    match mode {
        Mode::Delay(by) if before == 0 => tokio::time::sleep(by).await,
        Mode::Cut(after) if before + bytes.len() > after => {
            _ = client.write_all(&bytes[..after.saturating_sub(before)]).await;
            return false;
        }
        Mode::Trickle(at_a_time) => {
            for piece in bytes.chunks(at_a_time) {
                if client.write_all(piece).await.is_err() {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            return true;
        }
        _ => {}
    }
    _ = client.write_all(bytes).await;
    true
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
