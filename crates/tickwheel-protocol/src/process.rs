//! A command that the server runs as a process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document;
use crate::time::Span;

/// A command. No shell is involved unless the command is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessTarget {
    /// The program and its arguments: up to 1000 words and 100,000 bytes together. A program without a slash is
    /// searched for in `PATH`.
    #[schema(value_type = Vec<document::Word>, min_items = 1, max_items = 1000, example = json!(["/usr/bin/backup", "--full"]))]
    pub command: Vec<String>,
    /// Environment variables, up to 256 and 100,000 bytes together, in addition to those that the operator passes on
    /// and to Tickwheel's own (`TICKWHEEL_…`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, document::Word>, required = false)]
    pub env: BTreeMap<String, String>,
    /// Absolute path of the directory to run in. By default the home directory of the user that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<document::Directory>)]
    pub cwd: Option<String>,
    /// What the process reads from its standard input.
    #[serde(default)]
    #[schema(required = false)]
    pub stdin: Stdin,
    /// What its exit codes mean. By default 0 completes the job, and every other code is a failure that is retried.
    #[serde(default, skip_serializing_if = "ExitCodes::is_default")]
    #[schema(required = false)]
    pub exit_codes: ExitCodes,
}

/// What a process reads from its standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The payload as JSON; nothing if the payload is `null`.
    #[default]
    Payload,
    /// The text of a payload that is a string; any other payload as JSON.
    Text,
    /// Nothing.
    None,
}

/// What exit codes other than 0 mean. A code is in one list at most. A process that a signal ended counts as one that
/// exited with 128 plus the number of the signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitCodes {
    /// The only codes that are retried. If it is left out, all codes are that are not in another list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<document::ExitCode>>, max_items = 255)]
    pub retry: Option<Vec<u32>>,
    /// Codes that are not retried: the job fails at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<document::ExitCode>, max_items = 255, required = false)]
    pub fail: Vec<u32>,
    /// Codes that mean "not yet".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snooze: Option<Snooze>,
}

impl ExitCodes {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Codes with which a process asks to run again later. That is no failure and costs no retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Snooze {
    /// The codes.
    #[schema(value_type = Vec<document::ExitCode>, min_items = 1, max_items = 255, example = json!([75]))]
    pub codes: Vec<u32>,
    /// How long to wait, 1s or longer.
    pub delay: Span,
}

impl ProcessTarget {
    /// This command, with the defaults for everything else.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}
