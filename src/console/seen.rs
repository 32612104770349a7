//! What this process knows of both servers. It is read once for all open tabs, at most once a second, and kept: a page is there at once
//! also when a server is down or slow, and says since when.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::state::State;
use super::verdict::verdict;
use crate::audit::Shown;
use crate::check::{Level, Report};
use crate::history::{self, Minute};
use crate::journal::{self, Line};
use crate::reindex::{self, Progress};
use crate::serve::Serve;
use crate::status::Status;
use crate::{Catchword, Error, audit};

/// What is younger is not read again, however many tabs are open.
const FRESH: Duration = Duration::from_secs(1);
/// Somebody waits for a page no longer than this, if there is something to show.
const PATIENCE: Duration = Duration::from_secs(2);
/// The first page has nothing to show yet. `status` and `check` answer within eight seconds.
const FIRST: Duration = Duration::from_secs(12);
/// Without anybody who looks it is read so often: so a page can say since when something is so, and what was known before an outage.
const UNASKED: Duration = Duration::from_secs(30);
/// What the pages need besides `status` and `check` is not waited for longer.
const BESIDE: Duration = Duration::from_secs(4);
/// The sparkline's hour.
const HOUR: Duration = Duration::from_secs(3_600);
/// Lines of the journal on the first screen. More are read, because somebody may not see all collections.
const LINES: i64 = 40;
/// Reindexes that are looked through for those that run.
const REINDEXES: i64 = 20;
/// The same of audits.
const AUDITS: i64 = 20;

/// One look at everything.
pub(super) struct Glance {
    pub at: DateTime<Utc>,
    read: Instant,
    /// The error is what a person must fix first.
    pub status: Result<Arc<Status>, String>,
    pub report: Arc<Report>,
    /// None: it was not told in time.
    pub beside: Option<Beside>,
}

/// What is read besides.
#[derive(Default)]
pub(super) struct Beside {
    pub journal: Vec<Line>,
    pub reindexes: Vec<Progress>,
    pub audits: Vec<Shown>,
    /// The last hour of each collection.
    pub minutes: HashMap<String, Vec<Minute>>,
}

/// What is known now, and since when.
#[derive(Clone)]
pub(super) struct Known {
    pub now: Arc<Glance>,
    /// The last look that Postgres answered; the same one, if it does now.
    pub last: Option<Arc<Glance>>,
    pub postgres_down_since: Option<DateTime<Utc>>,
    pub elasticsearch_down_since: Option<DateTime<Utc>>,
    pub state: State,
    /// Since when it is so; none: for as long as this process has looked.
    pub state_since: Option<DateTime<Utc>>,
}

impl Glance {
    /// Why Postgres told nothing.
    pub fn postgres_down(&self) -> Option<&str> {
        match &self.status {
            Ok(status) => status.postgres.as_deref(),
            Err(why) => Some(why),
        }
    }

    /// Why Elasticsearch does not answer.
    pub fn elasticsearch_down(&self) -> Option<&str> {
        let check = self.report.checks.iter().find(|check| check.name == "CatchwordElasticsearchDown")?;
        (check.level != Level::Well).then_some(check.says.as_str())
    }

    /// The status, if Postgres told it.
    pub fn told(&self) -> Option<&Status> {
        self.status.as_deref().ok().filter(|status| status.postgres.is_none())
    }
}

impl Known {
    fn after(before: Option<&Known>, now: Glance) -> Known {
        let at = now.at;
        let since = |down: Option<&str>, since: Option<DateTime<Utc>>| down.map(|_| since.unwrap_or(at));
        let state = verdict(&now.report, now.told(), &|_| true).state;
        let state_since = match before {
            Some(before) if before.state == state => before.state_since,
            Some(_) => Some(at),
            None => None,
        };
        let postgres_down_since = since(now.postgres_down(), before.and_then(|before| before.postgres_down_since));
        let elasticsearch_down_since = since(now.elasticsearch_down(), before.and_then(|before| before.elasticsearch_down_since));
        let now = Arc::new(now);
        let last = if now.told().is_some() { Some(now.clone()) } else { before.and_then(|before| before.last.clone()) };
        Known { now, last, postgres_down_since, elasticsearch_down_since, state, state_since }
    }
}

/// Reads for everybody who looks.
pub(super) struct Seen {
    known: watch::Receiver<Option<Known>>,
    asked: Arc<Notify>,
}

impl Seen {
    /// Begins to look. It ends when nobody holds this any more.
    pub fn begin(serve: Serve) -> Seen {
        let (sender, known) = watch::channel(None);
        let asked = Arc::new(Notify::new());
        tokio::spawn(keep_looking(serve, sender, asked.clone()));
        Seen { known, asked }
    }

    /// What is known now. None: even the first look has not come to its end.
    pub async fn look(&self) -> Option<Known> {
        let mut known = self.known.clone();
        let before = known.borrow_and_update().clone();
        if before.as_ref().is_some_and(|before| before.now.read.elapsed() < FRESH) {
            return before;
        }
        self.asked.notify_one();
        _ = timeout(if before.is_some() { PATIENCE } else { FIRST }, known.changed()).await;
        known.borrow().clone()
    }
}

async fn keep_looking(serve: Serve, sender: watch::Sender<Option<Known>>, asked: Arc<Notify>) {
    loop {
        let now = glance(&serve).await;
        let known = Known::after(sender.borrow().as_ref(), now);
        let read = known.now.read;
        if sender.send(Some(known)).is_err() {
            return;
        }
        // whoever asked while it was read has it now
        loop {
            tokio::select! {
                () = sender.closed() => return,
                () = asked.notified() => if read.elapsed() >= FRESH { break },
                () = sleep(UNASKED) => break,
            }
        }
    }
}

async fn glance(serve: &Serve) -> Glance {
    let beside = async { timeout(BESIDE, beside(&serve.catchword)).await.ok()?.ok() };
    let (status, report, beside) = tokio::join!(serve.status(), serve.check(), beside);
    Glance { at: Utc::now(), read: Instant::now(), status: status.map_err(|problem| problem.detail), report, beside }
}

async fn beside(catchword: &Catchword) -> Result<Beside, Error> {
    let mut connection = catchword.context.pool.acquire().await?;
    let names: Vec<String> = catchword.config().collections.iter().map(|collection| collection.name.clone()).collect();
    let mut minutes = HashMap::new();
    for name in &names {
        minutes.insert(name.clone(), history::read(&mut connection, name, HOUR).await?);
    }
    Ok(Beside {
        journal: journal::journal(&mut connection, None, LINES).await?,
        reindexes: reindex::list(&mut connection, None, REINDEXES).await?,
        audits: audit::shown(&mut connection, &names, None, AUDITS).await?,
        minutes,
    })
}
