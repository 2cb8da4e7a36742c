//! `tickwheel config check`.

use serde_json::json;

use super::ConfigFile;
use crate::failure::CommandError;
use crate::output::{Output, pretty};

/// Reports that the configuration is valid, or everything that is wrong with it.
pub fn run(file: &ConfigFile, output: &Output) -> Result<(), CommandError> {
    let loaded = file.load(&[]);
    if !output.json {
        loaded?;
        return Ok(output.print("the configuration is valid")?);
    }
    let problems: Vec<String> = loaded
        .as_ref()
        .err()
        .map_or_else(Vec::new, |problems| problems.0.iter().map(ToString::to_string).collect());
    let report = json!({"valid": problems.is_empty(), "problems": problems});
    output.print(&pretty(&report.to_string()))?;
    loaded.map(drop).map_err(|problems| CommandError::Told(Box::new(problems.into())))
}
