//! `tickwheel config check`.

use super::ConfigFile;
use crate::failure::Failure;
use crate::output::Output;

/// Says that all is well, or everything that is not.
pub fn run(file: &ConfigFile, output: &Output) -> Result<(), Failure> {
    file.load(&[])?;
    let words = if output.json { "{\n  \"valid\": true\n}" } else { "the configuration is valid" };
    Ok(output.print(words)?)
}
