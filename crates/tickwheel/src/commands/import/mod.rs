//! `tickwheel import`: converts configuration of other programs into files for `tickwheel apply`. Needs no server.

pub mod crontab;

use clap::Subcommand;

use crate::failure::CommandError;
use crate::output::Output;

/// What to import.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Convert a crontab into a file of schedules on standard output
    Crontab(crontab::CrontabArgs),
}

/// Runs the command.
pub fn run(command: ImportCommand, output: &Output) -> Result<(), CommandError> {
    match command {
        ImportCommand::Crontab(args) => crontab::run(&args, output),
    }
}
