//! `catchword status --watch`: a screen that renews itself every second.

mod rates;
mod screen;
mod terminal;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use chrono::Utc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::End;
use super::paint::Paint;
use crate::history::{self, Lately, Minute};
use crate::status::Status;
use crate::{Catchword, Error, audit};
use rates::Rates;
use screen::{View, screen};
use terminal::{Terminal, quits};

/// How often the screen is renewed, and the servers are asked at most.
const EVERY: Duration = Duration::from_secs(1);
/// How long the history is waited for. What does not come is shown as it was before.
const HISTORY: Duration = Duration::from_secs(3);
/// What the sparklines show.
const HOUR: Duration = Duration::from_secs(3_600);

/// What was read at one time.
struct Read {
    status: Result<Status, Error>,
    /// None: it could not be read.
    past: Option<Past>,
}

/// What Postgres tells beside the status.
struct Past {
    minutes: BTreeMap<String, Vec<Minute>>,
    lately: Vec<Lately>,
    audits: Vec<audit::Unfinished>,
}

/// Runs until q, Ctrl-C or a signal. A server that is down is shown as such, and asked again.
pub(super) async fn run(catchword: &Catchword) -> anyhow::Result<End> {
    if !std::io::stdout().is_terminal() {
        anyhow::bail!("--watch needs a terminal; without one: catchword status, or catchword status --json");
    }
    if std::env::var("TERM").is_ok_and(|term| term == "dumb") {
        anyhow::bail!("--watch needs a terminal whose cursor can be moved, and TERM is dumb; without one: catchword status");
    }
    let (mut terminate, mut hang_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let (mut interrupt, mut resize) = (signal(SignalKind::interrupt())?, signal(SignalKind::window_change())?);
    let (send, mut reads) = mpsc::channel(1);
    let reader = keep_reading(catchword, send);
    tokio::pin!(reader);
    let (mut view, mut rates, mut read_at) = (View::default(), Rates::default(), None::<Instant>);
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let paint = Paint::of_stdout();
    let mut terminal = Terminal::take()?;
    let mut quits = quits();
    loop {
        tokio::select! {
            biased;
            Some(()) = quits.recv() => break,
            _ = terminate.recv() => break,
            _ = hang_up.recv() => break,
            _ = interrupt.recv() => break,
            _ = resize.recv() => {}
            Some(Read { status, past }) = reads.recv() => {
                read_at = Some(Instant::now());
                view.status = Some(status.map_err(|error| error.to_string()));
                if let Some(Past { minutes, lately, audits }) = past {
                    view.rates = rates.since_before(Instant::now(), &lately);
                    (view.minutes, view.audits) = (minutes, audits);
                }
            }
            () = &mut reader => break,
            _ = tick.tick() => {}
        }
        let age = read_at.map(|read_at| read_at.elapsed());
        terminal.draw(|size| screen(&view, age, Utc::now(), size, paint))?;
    }
    Ok(End::Done)
}

/// Reads again and again, and tells what it read. It ends when nobody listens.
async fn keep_reading(catchword: &Catchword, send: mpsc::Sender<Read>) {
    loop {
        let started = Instant::now();
        let status = catchword.status().await;
        let past = match timeout(HISTORY, past(catchword)).await {
            Ok(Ok(past)) => Some(past),
            // the status says what is wrong
            Ok(Err(_)) | Err(_) => None,
        };
        if send.send(Read { status, past }).await.is_err() {
            return;
        }
        sleep(EVERY.saturating_sub(started.elapsed())).await;
    }
}

async fn past(catchword: &Catchword) -> Result<Past, Error> {
    let mut connection = catchword.context.pool.acquire().await?;
    let mut minutes = BTreeMap::new();
    for collection in &catchword.config().collections {
        minutes.insert(collection.name.clone(), history::read(&mut connection, &collection.name, HOUR).await?);
    }
    let lately = history::lately(&mut connection).await?;
    Ok(Past { minutes, lately, audits: audit::unfinished(&mut connection, None, None).await? })
}
