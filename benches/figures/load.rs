//! Clients: as fast as they can, or at a given rate.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// So many clients, each one call after the other, `calls` in all: how long each took, and all together.
pub async fn closed<F, R>(clients: usize, calls: usize, call: F) -> anyhow::Result<(Vec<Duration>, Duration)>
where
    F: Fn(usize) -> R + Send + Sync + 'static,
    R: Future<Output = anyhow::Result<()>> + Send,
{
    let (call, next) = (Arc::new(call), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    let clients: Vec<_> = (0..clients)
        .map(|_| {
            let (call, next) = (call.clone(), next.clone());
            tokio::spawn(async move {
                let mut took = vec![];
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= calls {
                        return anyhow::Ok(took);
                    }
                    let begun = Instant::now();
                    call(n).await?;
                    took.push(begun.elapsed());
                }
            })
        })
        .collect();
    let mut all = Vec::with_capacity(calls);
    for client in clients {
        all.extend(client.await??);
    }
    Ok((all, started.elapsed()))
}

/// Calls at this rate, whether or not the ones before have ended: what each of them measured.
pub async fn open<F, R>(per_second: f64, calls: usize, call: F) -> anyhow::Result<Vec<Duration>>
where
    F: Fn(usize) -> R + Send + Sync + 'static,
    R: Future<Output = anyhow::Result<Duration>> + Send,
{
    let call = Arc::new(call);
    let started = tokio::time::Instant::now();
    let mut under_way = Vec::with_capacity(calls);
    for n in 0..calls {
        tokio::time::sleep_until(started + Duration::from_secs_f64(n as f64 / per_second)).await;
        let call = call.clone();
        under_way.push(tokio::spawn(async move { call(n).await }));
    }
    let mut took = Vec::with_capacity(calls);
    for one in under_way {
        took.push(one.await??);
    }
    Ok(took)
}
