//! Where the database is: one server, or several of which one can be written to. sqlx knows one address only, so the pools are pointed at the
//! primary, and followed there after a failover.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, Row};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ACQUIRE, pooler};
use crate::Error;
use crate::config::DatabaseUrl;

/// Of several hosts, one that is silent is left for the next one after this, unless the address has a `connect_timeout`.
const SILENT: Duration = Duration::from_secs(2);
/// How often the primary is asked whether it still is one, and looked for while there is none.
const EVERY: Duration = Duration::from_secs(1);

/// The addresses of a database, in the order in which they are tried.
#[derive(Clone)]
pub(crate) struct Hosts {
    first: PgConnectOptions,
    others: Vec<PgConnectOptions>,
    connect_timeout: Option<Duration>,
    /// Where the pools lead.
    used: Arc<Mutex<String>>,
}

impl Hosts {
    pub fn of(url: &DatabaseUrl) -> Result<Hosts, Error> {
        let mut each = Vec::new();
        for url in url.expose_each() {
            each.push(as_catchword(PgConnectOptions::from_str(url).map_err(|_| Error::DatabaseUrl)?));
        }
        let mut each = each.into_iter();
        let first = each.next().ok_or(Error::DatabaseUrl)?;
        let used = Arc::new(Mutex::new(name(&first)));
        Ok(Hosts { first, others: each.collect(), connect_timeout: url.connect_timeout(), used })
    }

    /// Where it begins; nobody has looked yet whether it can be written to.
    pub fn first(&self) -> &PgConnectOptions {
        &self.first
    }

    pub fn are_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// How long somebody waits for a connection.
    pub fn patience(&self) -> Duration {
        self.connect_timeout.unwrap_or(ACQUIRE)
    }

    /// The first that answers and can be written to, and whose sessions stay. A single one is taken as it is: whoever works with it refuses
    /// a standby in its own words.
    pub async fn find(&self) -> Result<PgConnectOptions, Error> {
        if !self.are_several() {
            pooler::refuse(&self.first, self.patience()).await?;
            return Ok(self.first.clone());
        }
        Ok(self.find_one_of_several().await?.0)
    }

    /// A connection to the first of several that can be written to.
    pub(super) async fn find_one_of_several(&self) -> Result<(PgConnectOptions, PgConnection), Error> {
        let patience = self.connect_timeout.unwrap_or(SILENT);
        let mut told = Vec::new();
        for options in std::iter::once(&self.first).chain(&self.others) {
            match connect_to_primary(options, patience).await {
                Ok(Some(connection)) => {
                    pooler::refuse(options, patience).await?;
                    return Ok((options.clone(), connection));
                }
                Ok(None) => told.push(format!("{} is a standby or read-only", name(options))),
                // a wrong password is wrong everywhere, and its sentence is the server's own
                Err(error) => told.push(format!("{}: {}", name(options), Error::Postgres(error))),
            }
        }
        Err(Error::NoPrimary(told.join("; ")))
    }

    /// Points the pools at the server that can be written to.
    pub async fn point(&self, pools: &[PgPool]) -> Result<(), Error> {
        let options = self.find().await?;
        self.lead(pools, &options);
        Ok(())
    }

    /// Keeps the pools at the primary for as long as the guard lives; none: there is only one host.
    pub fn follow(&self, pools: Vec<PgPool>) -> Option<DropGuard> {
        if !self.are_several() {
            return None;
        }
        let (stop, hosts) = (CancellationToken::new(), self.clone());
        let token = stop.clone();
        tokio::spawn(async move { token.run_until_cancelled(hosts.keep(&pools)).await });
        Some(stop.drop_guard())
    }

    async fn keep(&self, pools: &[PgPool]) {
        let (mut was_found, mut trouble) = (false, None);
        loop {
            match self.find_one_of_several().await {
                Ok((options, connection)) => {
                    self.lead(pools, &options);
                    if trouble.take().is_some() {
                        tracing::info!("{} can be written to", name(&options));
                    }
                    was_found = true;
                    self.stay(connection).await;
                }
                // who begins without one is told by whatever it begins with
                Err(error) if was_found => {
                    let error = error.to_string();
                    if trouble.as_ref() != Some(&error) {
                        tracing::warn!("{error}; it is tried again every second");
                        trouble = Some(error);
                    }
                }
                Err(error) => tracing::debug!("{error}"),
            }
            sleep(EVERY).await;
        }
    }

    /// Points pools at a server, and lets idle connections to another one go.
    fn lead(&self, pools: &[PgPool], options: &PgConnectOptions) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if *used == name(options) {
            return;
        }
        *used = name(options);
        for pool in pools {
            pool.set_connect_options(options.clone());
            // a server that is frozen or cut off would be waited for
            while let Some(idle) = pool.try_acquire() {
                drop(idle.detach());
            }
        }
        tracing::info!("{used} is the Postgres that can be written to, and is used from now on");
    }

    /// Returns when the server does not answer any more, or cannot be written to.
    async fn stay(&self, mut connection: PgConnection) {
        let patience = self.connect_timeout.unwrap_or(SILENT);
        while timeout(patience, is_writable(&mut connection)).await.is_ok_and(|asked| asked.unwrap_or(false)) {
            sleep(EVERY).await;
        }
    }
}

/// None: it answers, and cannot be written to.
async fn connect_to_primary(options: &PgConnectOptions, patience: Duration) -> Result<Option<PgConnection>, sqlx::Error> {
    let asked = async {
        let mut connection = PgConnection::connect_with(options).await?;
        Ok(if is_writable(&mut connection).await? { Some(connection) } else { None })
    };
    timeout(patience, asked).await.unwrap_or_else(|_| Err(silent()))
}

/// A connection within this time, without any settings.
pub(super) async fn connect(options: &PgConnectOptions, patience: Duration) -> Result<PgConnection, sqlx::Error> {
    timeout(patience, PgConnection::connect_with(options)).await.unwrap_or_else(|_| Err(silent()))
}

/// By the simple protocol: nothing of it is left in a session that is another's.
pub(super) async fn is_writable(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::raw_sql(include_str!("is_writable.sql")).fetch_one(connection).await?.try_get(0)
}

/// For people, and to tell one from another.
pub(super) fn name(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => format!("{}:{}", socket.display(), options.get_port()),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

pub(super) fn silent() -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in time"))
}

/// Our own name. The digits of numbers are set in the session (session.sql): as a parameter of the start, a pooler may refuse them.
fn as_catchword(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("catchword").extra_float_digits(None).disable_statement_logging()
}
