//! `tickwheel config check`.

use super::ConfigFile;
use crate::failure::Failure;
use crate::output::Output;

/// Says that all is well, or everything that is not.
pub fn run(file: &ConfigFile, output: &Output) -> Result<(), Failure> {
    file.load(&[])?;
    Ok(output.print("the configuration is valid")?)
}
