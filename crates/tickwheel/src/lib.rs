//! The `tickwheel` program: its command line, its configuration, and the composition of a server from its parts.
//!
//! `serve` is the only command that makes a server of stores, engine, workers and API. `worker` runs the built-in
//! executors as a worker of a server elsewhere. `bench` measures some of these
//! in its own process, `cron` and `config` answer by themselves what a server of this version would; all others are
//! clients that say what they want in the words of the protocol, and use the core only to read and show times. Results
//! go to standard output, everything else to standard error, and the exit code tells a script what happened (see
//! [`failure`]).

pub mod cli;
pub mod commands;
pub mod config;
pub mod embedded;
pub mod failure;
pub mod output;
pub mod serve;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::Parser;

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
    let cli = cli::Cli::parse();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(failure::CommandError::from)
        .and_then(|runtime| runtime.block_on(commands::run(cli)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                say_at_the_end(format!("error: {message}"));
            }
            failure.exit_code()
        }
    }
}

/// Says it on standard error; if nobody listens any more, or stands still, the program ends all the same.
fn say_at_the_end(words: String) {
    const TIME_MAX: Duration = Duration::from_secs(2);
    let (said, is_said) = mpsc::channel();
    let speaking = std::thread::Builder::new().spawn(move || {
        // Not `eprintln!`: it panics when nobody listens any more.
        let _ = writeln!(std::io::stderr(), "{words}");
        let _ = said.send(());
    });
    if speaking.is_ok() {
        let _ = is_said.recv_timeout(TIME_MAX);
    }
}
