//! `tickwheel config`: the configuration a server would use, and its mistakes. Needs no server.

mod check;
mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::{self, Config, Flag, Problems, Sources};
use crate::failure::CommandError;
use crate::output::Output;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Report all mistakes in the configuration
    Check(ConfigFile),
    /// Print the effective configuration, with secrets masked
    Show(ConfigFile),
}

/// The file to read.
#[derive(Debug, Args)]
pub struct ConfigFile {
    /// Configuration file [env: TICKWHEEL_CONFIG] [default: none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigFile {
    /// The configuration from this file, the environment and these flags.
    pub fn load(&self, flags: &[Flag]) -> Result<Config, Problems> {
        let from_env =
            std::env::var_os("TICKWHEEL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        let file = self.config.clone().or(from_env);
        config::load(&Sources { file: file.as_deref(), env: &|name| std::env::var(name).ok(), flags })
    }
}

/// Runs the command.
pub fn run(command: &ConfigCommand, output: &Output) -> Result<(), CommandError> {
    match command {
        ConfigCommand::Check(file) => check::run(file, output),
        ConfigCommand::Show(file) => show::run(file, output),
    }
}
