//! The command line. Exit 0: done; 1: nothing to do, or not well; 2: it could not.

mod args;
mod audit;
mod check;
mod dead;
mod detach;
mod doctor;
mod explain;
mod history;
mod init;
mod journal;
mod key;
mod log;
mod migrate;
mod paint;
mod pause;
mod probes;
mod progress;
mod rebuild;
mod reindex;
mod reindexes;
mod serve;
mod sparkline;
mod status;
mod sync;
mod watch;
mod worker;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;

use crate::config::{Config, Environment, Tls};
use crate::printable::printable;
use crate::{Catchword, collection, migrate as schema};
use args::{Args, Command};

/// How a command ended, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Done,
    /// Nothing to do, or not well.
    Not,
    /// It could not find out, and said so.
    Unknown,
}

/// Parses the command line, runs the command, and says what went wrong, once.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let args = match args::parse(&words) {
        Ok(args) => args,
        Err(error) => {
            _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("catchword: no threads could be started: {error}");
            return ExitCode::from(2);
        }
    };
    let ended = runtime.block_on(async {
        log::start(args.log, &args.command)?;
        run(args).await
    });
    runtime.shutdown_background();
    match ended {
        Ok(End::Done) => ExitCode::SUCCESS,
        Ok(End::Not) => ExitCode::from(1),
        Ok(End::Unknown) => ExitCode::from(2),
        Err(error) => {
            eprintln!("catchword: {}", printable(&sentence(&error)));
            ExitCode::from(2)
        }
    }
}

async fn run(args: Args) -> anyhow::Result<End> {
    match &args.command {
        Command::Init(options) => init::run(&args, options).await,
        Command::Migrate(options) => migrate::run(&args, options).await,
        Command::Detach(options) => detach::run(&args, options).await,
        Command::Worker(options) => worker::run(&args, options).await,
        Command::Serve(options) => serve::run(&args, options).await,
        Command::Key(options) => key::run(&args, options).await,
        Command::Sync(options) => sync::run(&args, options).await,
        Command::Reindex(options) => reindex::run(&args, options).await,
        Command::Rebuild(options) => rebuild::run(&args, options).await,
        Command::Status(options) => status::run(&args, options).await,
        Command::History(options) => history::run(&args, options).await,
        Command::Check(options) => check::run(&args, options).await,
        Command::Doctor(options) => doctor::run(&args, options).await,
        Command::Explain(options) => explain::run(&args, options).await,
        Command::Audit(options) => audit::run(&args, options).await,
        Command::Dead(options) => dead::run(&args, options).await,
        Command::Pause(options) => pause::pause(&args, options).await,
        Command::Resume(options) => pause::resume(&args, options).await,
        Command::Journal(options) => journal::run(&args, options).await,
    }
}

impl Args {
    fn config(&self) -> anyhow::Result<Config> {
        Ok(Config::read(&self.config)?)
    }

    fn environment(&self) -> anyhow::Result<Environment> {
        Ok(Environment::from_process(if self.insecure { Tls::Insecure } else { Tls::Verified })?)
    }

    /// Opened, with nothing asked of either side yet.
    fn open(&self) -> anyhow::Result<Catchword> {
        Ok(Catchword::open(self.config()?, &self.environment()?)?)
    }
}

/// Refuses a pooler that shares sessions, a standby and another version's schema. Which collections can be worked on is each command's own question.
async fn check_database(catchword: &Catchword) -> anyhow::Result<()> {
    catchword.context.reach_postgres().await?;
    let mut connection = catchword.context.pool.acquire().await.map_err(crate::Error::from)?;
    collection::refuse_standby(&mut connection).await?;
    Ok(schema::check_version(&mut connection).await?)
}

/// Who is at the terminal, for the journal.
fn who() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()).filter(|user| !user.is_empty());
    format!("{}@{}", user.unwrap_or_else(|| "unknown".into()), crate::host::host())
}

/// The chain on one line. A cause that its effect already repeats is left out.
fn sentence(error: &anyhow::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
        // its sentence holds the server's own; the driver's wraps that in a line number of the server's source
        if matches!(cause.downcast_ref(), Some(crate::Error::Postgres(_))) {
            break;
        }
    }
    said.join(": ")
}

/// Asks before what cannot be undone. Without a terminal the answer must be on the command line.
fn confirmed(question: &str, yes: bool) -> anyhow::Result<bool> {
    use std::io::{BufRead, IsTerminal, Write};
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        anyhow::bail!("{question} say --yes, since there is no terminal to ask on");
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush().context("the terminal is gone")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("the terminal is gone")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// What a command found, for scripts.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    say(format_args!("{}\n", serde_json::to_string_pretty(value)?))
}

/// What a command found, for people. A reader that has seen enough (`| head`) is no error.
fn say(text: impl std::fmt::Display) -> anyhow::Result<()> {
    use std::io::{ErrorKind, Write, stdout};
    match write!(stdout(), "{text}").and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output cannot be written to"),
    }
}
