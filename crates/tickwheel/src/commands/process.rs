//! Options that say which command a job runs.

use tickwheel_protocol::ProcessTarget;

use crate::failure::CommandError;

/// A command instead of a URL. What is left out is as before.
#[derive(Debug, Default, PartialEq)]
pub struct ProcessOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment.
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub cwd: Option<String>,
}

impl ProcessOptions {
    /// The command as the options change it; none if they say nothing.
    pub fn applied_to(self, before: Option<ProcessTarget>) -> Result<Option<ProcessTarget>, CommandError> {
        if self == Self::default() {
            return Ok(None);
        }
        let mut process = before.unwrap_or_default();
        if !self.command.is_empty() {
            process.command = self.command;
        }
        if process.command.is_empty() {
            return Err(CommandError::BadInput("--env and --cwd need a command, after `--`".into()));
        }
        if !self.env.is_empty() {
            process.env = self.env.into_iter().collect();
        }
        process.cwd = self.cwd.or(process.cwd);
        Ok(Some(process))
    }
}

/// Reads `NAME=VALUE`.
pub fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
