//! Takes connections for a server of ours: the worker's probes, and `catchword serve`. Whoever is slow, hostile or many cannot keep the
//! others out.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::uri::{PathAndQuery, Uri};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a server takes of its clients.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Connections at a time. Above it one gives way to a new one: the oldest without a request, else the oldest.
    pub connections: usize,
    /// The head of a request must be here by then; where connections are kept, so must the next one.
    pub head: Duration,
    /// The largest head, in bytes. A larger one is refused with 431.
    pub head_bytes: usize,
    /// After this a connection takes no further request.
    pub life: Duration,
    /// So long a request that is under way then may still take.
    pub grace: Duration,
    /// May a connection have more than one request?
    pub keep: bool,
    /// What stands before every path, and is taken off: `/catchword`, or nothing.
    pub base: String,
}

/// Who is at the other end of the connection, in the extensions of each request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// A path that does not begin with the base path, in the extensions of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutsideBase;

/// Serves until `stop`, and then what is under way, for `grace` at most.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: CancellationToken) {
    let mut open: VecDeque<Open> = VecDeque::new();
    let (all, limits) = (TaskTracker::new(), Arc::new(limits));
    while let Some((stream, peer)) = stop.run_until_cancelled(accept(&listener)).await {
        make_room(&mut open, limits.connections);
        let requests = Arc::new(AtomicUsize::new(0));
        let connection = one(stream, peer, router.clone(), limits.clone(), requests.clone(), stop.clone());
        open.push_back(Open { requests, task: all.spawn(connection).abort_handle() });
    }
    all.close();
    _ = tokio::time::timeout(limits.grace, all.wait()).await;
}

/// A connection, and how many requests of it are under way.
struct Open {
    requests: Arc<AtomicUsize>,
    task: AbortHandle,
}

fn make_room(open: &mut VecDeque<Open>, most: usize) {
    open.retain(|connection| !connection.task.is_finished());
    if open.len() >= most {
        let idle = open.iter().position(|connection| connection.requests.load(Ordering::Relaxed) == 0);
        if let Some(given_up) = open.remove(idle.unwrap_or(0)) {
            given_up.task.abort();
        }
    }
}

/// Serves one connection. What a client does wrong concerns nobody else.
async fn one(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    limits: Arc<Limits>,
    requests: Arc<AtomicUsize>,
    stop: CancellationToken,
) {
    // a small answer is not to wait for the client's acknowledgement of the one before
    _ = stream.set_nodelay(true);
    let inner = TowerToHyperService::new(router);
    let base = limits.base.clone();
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        match within(request.uri(), &base) {
            Some(uri) => *request.uri_mut() = uri,
            None => _ = request.extensions_mut().insert(OutsideBase),
        }
        requests.fetch_add(1, Ordering::Relaxed);
        let (answered, under_way) = (inner.call(request), UnderWay(requests.clone()));
        async move {
            let answer = answered.await;
            drop(under_way);
            answer
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(limits.head_bytes).keep_alive(limits.keep);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = &mut served => return,
        () = tokio::time::sleep(limits.life) => {}
        () = stop.cancelled() => {}
    }
    served.as_mut().graceful_shutdown();
    _ = tokio::time::timeout(limits.grace, served).await;
}

struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The same without the base path. None: it does not begin with it.
fn within(uri: &Uri, base: &str) -> Option<Uri> {
    let rest = uri.path_and_query().map_or("/", PathAndQuery::as_str).strip_prefix(base)?;
    let rest = match rest.as_bytes().first() {
        Some(b'/') => rest.to_owned(),
        None | Some(b'?') => format!("/{rest}"),
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// The next connection. Where none can be taken (no file is left to open) it is tried again.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        let accepted: io::Result<_> = listener.accept().await;
        match accepted {
            Ok(accepted) => return accepted,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn the_base_path_is_taken_off_whole_or_not_at_all() {
        let path = |uri: &str, base| within(&uri.parse().unwrap(), base).map(|uri| uri.to_string());
        assert_eq!(path("/a/b?c=/d", "").as_deref(), Some("/a/b?c=/d"));
        assert_eq!(path("/cw/a%2Fb?c", "/cw").as_deref(), Some("/a%2Fb?c"));
        assert_eq!(path("/cw", "/cw").as_deref(), Some("/"));
        assert_eq!(path("/cw?x=1", "/cw").as_deref(), Some("/?x=1"));
        assert_eq!(path("/cwx/a", "/cw"), None);
        assert_eq!(path("/other", "/cw"), None);
    }
}
