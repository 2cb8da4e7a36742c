//! `tickwheel import`: what other programs have, as files that `tickwheel apply` takes. Needs no server.

pub mod crontab;

use clap::Subcommand;

use crate::failure::CommandError;
use crate::output::Output;

/// What to import.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Turn a crontab into a file of schedules, printed on standard output
    Crontab(crontab::CrontabArgs),
}

/// Does what the command line says.
pub fn run(command: ImportCommand, output: &Output) -> Result<(), CommandError> {
    match command {
        ImportCommand::Crontab(args) => crontab::run(&args, output),
    }
}
