#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    catchword::cli::main()
}
