//! `tickwheel config show`.

use super::ConfigFile;
use crate::config;
use crate::failure::Failure;
use crate::output::Output;

/// Prints the effective configuration as TOML.
pub fn run(file: &ConfigFile, output: &Output) -> Result<(), Failure> {
    Ok(output.print(&config::show(&file.load(&[])?))?)
}
