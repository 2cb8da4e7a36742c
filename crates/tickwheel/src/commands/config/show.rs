//! `tickwheel config show`.

use anyhow::Context as _;

use super::ConfigFile;
use crate::config;
use crate::failure::CommandError;
use crate::output::{Output, pretty};

/// Prints the effective configuration: as TOML, or as JSON without the settings that are not set.
pub fn run(file: &ConfigFile, output: &Output) -> Result<(), CommandError> {
    let shown = config::show(&file.load(&[])?);
    if !output.json {
        return Ok(output.print(&shown)?);
    }
    let table: toml::Table = toml::from_str(&shown).context("what is shown cannot be read")?;
    let text = serde_json::to_string(&table).map_err(anyhow::Error::from)?;
    Ok(output.print(&pretty(&text))?)
}
