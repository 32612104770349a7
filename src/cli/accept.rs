//! Takes connections for the worker's few small answers. Whoever is slow, hostile or many cannot keep the others out.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Connections at a time: a scraper, a few probes, and room. The oldest gives way to a new one.
const MOST: usize = 64;
/// The head of a request must be here by then.
const HEAD: Duration = Duration::from_secs(5);
/// All of it: the request, the answer, and a client that reads it. A scrape waits two seconds for Postgres at most.
const WHOLE: Duration = Duration::from_secs(10);
/// The largest head, in bytes. A larger one is refused with 431.
const HEAD_BYTES: usize = 16 * 1024;
/// The largest body, in bytes: nothing here takes one.
const BODY_BYTES: u64 = 1024;

/// Serves one request per connection until `stop`.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let router = router.layer(middleware::from_fn(refuse_large));
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    while let Some(stream) = stop.run_until_cancelled(accept(&listener)).await {
        open.retain(|connection| !connection.is_finished());
        if open.len() >= MOST
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        // what a client does wrong concerns nobody else
        let served = tokio::spawn(async move { tokio::time::timeout(WHOLE, served).await.map(|_| ()) });
        open.push_back(served.abort_handle());
    }
}

/// The next connection. Where none can be taken (no file is left to open) it is tried again.
async fn accept(listener: &TcpListener) -> tokio::net::TcpStream {
    loop {
        let accepted: io::Result<_> = listener.accept().await;
        match accepted {
            Ok((stream, _)) => return stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn refuse_large(request: Request, next: Next) -> Response {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|bytes| bytes > BODY_BYTES) {
        return (StatusCode::PAYLOAD_TOO_LARGE, "nothing here takes a body\n").into_response();
    }
    next.run(request).await
}
