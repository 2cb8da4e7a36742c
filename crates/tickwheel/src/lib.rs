//! The `tickwheel` program: its command line, its configuration, and the composition of a server from its parts.
//!
//! `serve` is the only place that sees stores, engine, workers and API at once; every other command is a client that
//! knows nothing but the protocol. Results go to standard output, everything else to standard error, and the exit
//! code tells a script what happened (see [`failure`]).

pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod failure;
pub mod output;
pub mod serve;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
    let cli = cli::Cli::parse();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(failure::Failure::from)
        .and_then(|runtime| runtime.block_on(commands::run(cli)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // Not `eprintln!`: it panics when nobody listens any more.
                let _ = writeln!(std::io::stderr(), "error: {message}");
            }
            failure.exit_code()
        }
    }
}
