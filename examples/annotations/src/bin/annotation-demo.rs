//! The demo: an outage of Elasticsearch, replayed. `make demo` builds what it needs and runs it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use annotations::demo::{After, Size, run};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

/// Replay an outage of Elasticsearch, and show that nothing is lost.
///
/// Starts the annotation service and a worker on the servers that DATABASE_URL and ELASTICSEARCH_URL name, with a
/// database and indices of its own, which are dropped at the end. Elasticsearch is reached through a gate in this
/// program; closing it is the outage, and no server is touched. Takes about three minutes, most of it the minute
/// that catchword waits before it looks.
/// Exit code 0: both sides agree; 1: they do not; 2: it could not, and why is on standard error.
#[derive(Debug, Parser)]
#[command(name = "annotation-demo", version)]
struct Cli {
    /// A tenth of the annotations, and seconds instead of minutes
    #[arg(long)]
    fast: bool,
    /// Keep everything up at the end, with the console open, until it is interrupted
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let size = if cli.fast { Size::Fast } else { Size::Full };
    let after = if cli.keep { After::Keep } else { After::End };
    // whichever ends first: what is dropped here ends the programs and sweeps what was made
    tokio::select! {
        ended = run(size, after) => match ended {
            Ok(compared) if compared.agree() => ExitCode::SUCCESS,
            Ok(_) => ExitCode::from(1),
            Err(error) => {
                eprintln!("annotation-demo: {error:#}");
                ExitCode::from(2)
            }
        },
        code = interrupted() => {
            eprintln!("\nannotation-demo: interrupted; the programs are ended, and what was made is dropped");
            code
        }
    }
}

/// Comes with the first signal that asks for an end.
async fn interrupted() -> ExitCode {
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    // 128 and the signal's number, as a shell says it
    tokio::select! {
        _ = interrupt.recv() => ExitCode::from(130),
        _ = terminate.recv() => ExitCode::from(143),
        _ = hangup.recv() => ExitCode::from(129),
    }
}
