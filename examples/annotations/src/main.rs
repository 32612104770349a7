//! The annotation service's binary: `annotation-api migrate | serve | generate`.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(cli::Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("annotation-api: {error:#}");
            ExitCode::from(2)
        }
    }
}
