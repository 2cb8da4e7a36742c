//! A command that the server starts as a process, and what its exit codes mean.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessTarget {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// The directory it runs in, if not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What it reads.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub stdin: Stdin,
    /// What its exit codes mean.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub exit_codes: ExitCodes,
}

/// What a process reads from its standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The payload as JSON; nothing if it is `null`.
    #[default]
    Payload,
    /// The text of a payload that is a string; any other as JSON.
    Text,
    /// Nothing.
    None,
}

/// What exit codes mean. 0 always means done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCodes {
    /// The only ones that are tried again. `None`: all that are in no other list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Vec<u8>>,
    /// Those that are not tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<u8>,
    /// Those that ask to run again later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snooze: Vec<u8>,
    /// How much later, in milliseconds.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub snooze_ms: u64,
}

/// What an exit code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitMeaning {
    /// The work is done.
    Done,
    /// It failed; trying again could help.
    Retry,
    /// It failed; trying again would not help.
    Fail,
    /// It is too early.
    Snooze {
        /// How long to wait.
        again_in: Duration,
    },
}

impl ExitCodes {
    /// What a code means. A signal counts as 128 and its number, as shells have it.
    pub fn meaning(&self, code: i32) -> ExitMeaning {
        let is_in = |codes: &[u8]| codes.iter().any(|listed| i32::from(*listed) == code);
        match &self.retry {
            _ if code == 0 => ExitMeaning::Done,
            _ if is_in(&self.snooze) => {
                ExitMeaning::Snooze { again_in: Duration::from_millis(self.snooze_ms) }
            }
            _ if is_in(&self.fail) => ExitMeaning::Fail,
            Some(codes) if !is_in(codes) => ExitMeaning::Fail,
            _ => ExitMeaning::Retry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rules_every_code_but_zero_is_tried_again() {
        let codes = ExitCodes::default();
        assert_eq!(codes.meaning(0), ExitMeaning::Done);
        assert!((1..300).all(|code| codes.meaning(code) == ExitMeaning::Retry));
    }

    #[test]
    fn a_list_of_codes_to_retry_leaves_no_other() {
        let codes =
            ExitCodes { retry: Some(vec![1, 137]), fail: vec![2], snooze: vec![75], snooze_ms: 5_000 };
        let meanings = [0, 1, 137, 2, 3, 75].map(|code| codes.meaning(code));
        let snooze = ExitMeaning::Snooze { again_in: Duration::from_secs(5) };
        use ExitMeaning::{Done, Fail, Retry};
        assert_eq!(meanings, [Done, Retry, Retry, Fail, Fail, snooze]);
        let codes = ExitCodes { fail: vec![2], ..ExitCodes::default() };
        assert_eq!([1, 2].map(|code| codes.meaning(code)), [Retry, Fail]);
        let none = ExitCodes { retry: Some(Vec::new()), ..ExitCodes::default() };
        assert_eq!(none.meaning(1), Fail, "an empty list means none");
    }

    #[test]
    fn a_plain_command_is_stored_as_little_more_than_itself() {
        let target = ProcessTarget { command: vec!["ls".into()], ..ProcessTarget::default() };
        let stored = serde_json::to_string(&target).unwrap();
        assert_eq!(stored, r#"{"command":["ls"]}"#);
        assert_eq!(serde_json::from_str::<ProcessTarget>(&stored).unwrap(), target);
    }
}
