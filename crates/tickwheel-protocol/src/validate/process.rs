//! The rules for a command. Whether the operator allows it is not known here.

use std::collections::HashSet;

use super::Rules;
use crate::pointer;
use crate::problem::FieldCode;
use crate::process::{ExitCodes, ProcessTarget};
use crate::time::Span;

const COMMAND_WORDS_MAX: usize = 1_000;
/// The system takes no word over 128 KiB, and not many of them.
const COMMAND_BYTES_MAX: usize = 100_000;
const ENV_LEN_MAX: usize = 256;
const ENV_BYTES_MAX: usize = 100_000;
const CWD_BYTES_MAX: usize = 4_096;
const EXIT_CODES_LEN_MAX: usize = 255;
const RESERVED_PREFIX: &str = "TICKWHEEL_";
/// A job that snoozes costs a start each time.
const SNOOZE_MIN: Span = Span::from_millis(1_000);

impl Rules<'_> {
    pub(super) fn process_target(&mut self, process: &ProcessTarget) {
        self.within("/target/process", |rules| {
            rules.command(&process.command);
            rules.env(process);
            rules.cwd(process.cwd.as_deref());
            rules.exit_codes(&process.exit_codes);
        });
    }

    fn command(&mut self, command: &[String]) {
        if command.first().is_none_or(String::is_empty) {
            self.broken("/command", FieldCode::InvalidValue, "must begin with a program");
        }
        if command.len() > COMMAND_WORDS_MAX {
            let detail = format!("must not have more than {COMMAND_WORDS_MAX} entries");
            return self.broken("/command", FieldCode::TooMany, detail);
        }
        self.bytes("/command", command.iter().map(String::len).sum(), COMMAND_BYTES_MAX);
        for (index, word) in command.iter().enumerate() {
            self.without_nul(&format!("/command/{index}"), word);
        }
    }

    fn env(&mut self, process: &ProcessTarget) {
        if process.env.len() > ENV_LEN_MAX {
            let detail = format!("must not have more than {ENV_LEN_MAX} entries");
            return self.broken("/env", FieldCode::TooMany, detail);
        }
        let bytes = process.env.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.bytes("/env", bytes, ENV_BYTES_MAX);
        for (name, value) in &process.env {
            let mut place = "/env".to_owned();
            pointer::push_key(&mut place, name);
            if !is_variable_name(name) {
                let detail =
                    "is not the name of a variable: letters, digits and `_`, not beginning with a digit";
                self.broken(place, FieldCode::InvalidValue, detail);
            } else if name.starts_with(RESERVED_PREFIX) {
                self.broken(place, FieldCode::Reserved, "is set by Tickwheel itself");
            } else {
                self.without_nul(&place, value);
            }
        }
    }

    fn cwd(&mut self, cwd: Option<&str>) {
        let Some(cwd) = cwd else { return };
        self.bytes("/cwd", cwd.len(), CWD_BYTES_MAX);
        self.without_nul("/cwd", cwd);
        if !cwd.starts_with('/') {
            self.broken("/cwd", FieldCode::InvalidValue, "must be an absolute path");
        }
    }

    fn exit_codes(&mut self, codes: &ExitCodes) {
        let retry = codes.retry.as_deref().unwrap_or_default();
        let snooze = codes.snooze.as_ref().map(|snooze| snooze.codes.as_slice());
        if snooze.is_some_and(<[u32]>::is_empty) {
            self.broken("/exit_codes/snooze/codes", FieldCode::InvalidValue, "must not be empty");
        }
        let mut listed = HashSet::new();
        for (place, codes) in
            [("retry", retry), ("fail", &codes.fail), ("snooze/codes", snooze.unwrap_or_default())]
        {
            let place = format!("/exit_codes/{place}");
            if codes.len() > EXIT_CODES_LEN_MAX {
                let detail = format!("must not have more than {EXIT_CODES_LEN_MAX} entries");
                self.broken(place, FieldCode::TooMany, detail);
                continue;
            }
            for (index, code) in codes.iter().enumerate() {
                let place = format!("{place}/{index}");
                if !(1..=255).contains(code) {
                    self.broken(place, FieldCode::OutOfRange, "must be from 1 to 255: 0 completes the job");
                } else if !listed.insert(code) {
                    self.broken(place, FieldCode::Conflict, format!("{code} is listed already"));
                }
            }
        }
        let Some(snooze) = &codes.snooze else { return };
        let longest = self.limits.retry_delay_seconds_max;
        self.delay("/exit_codes/snooze/delay", Some(snooze.delay), longest);
        if snooze.delay < SNOOZE_MIN {
            let detail = format!("must be {SNOOZE_MIN} or longer");
            self.broken("/exit_codes/snooze/delay", FieldCode::OutOfRange, detail);
        }
    }

    fn bytes(&mut self, pointer: &str, bytes: usize, bytes_max: usize) {
        if bytes > bytes_max {
            let detail = format!("must not be larger than {bytes_max} bytes");
            self.broken(pointer, FieldCode::TooLong, detail);
        }
    }

    fn without_nul(&mut self, pointer: &str, text: &str) {
        if text.contains('\0') {
            self.broken(pointer, FieldCode::InvalidValue, "must not contain NUL");
        }
    }
}

fn is_variable_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use crate::job::SubmitJob;
    use crate::limits::Limits;
    use crate::problem::FieldCode::{self, Conflict, InvalidValue, OutOfRange, Reserved, TooLong, TooMany};
    use crate::strict_json;
    use crate::validate::Validate;

    fn broken(target: &str) -> Vec<(String, FieldCode)> {
        let json = format!(r#"{{"type":"t","target":{{"process":{target}}}}}"#);
        let job: SubmitJob = strict_json::read(json.as_bytes(), 64).expect(&json);
        match job.validate(&Limits::default()) {
            Ok(()) => Vec::new(),
            Err(problem) => problem.errors.into_iter().map(|error| (error.pointer, error.code)).collect(),
        }
    }

    #[test]
    fn a_command_with_everything_is_fine() {
        let full = r#"{"command":["/bin/sh","-c","echo \"$A\"\n",""],"env":{"A":"x\ny","_b2":""},"cwd":"/srv",
            "stdin":"text","exit_codes":{"retry":[1,2],"fail":[3],"snooze":{"codes":[75],"delay":"5m"}}}"#;
        assert_eq!(broken(full), []);
        assert_eq!(broken(r#"{"command":["ls"]}"#), []);
    }

    #[test]
    fn every_broken_rule_has_its_place() {
        let long = "x".repeat(100_001);
        for (rest, pointer, code) in [
            (r#""command":[]"#.to_owned(), "/command", InvalidValue),
            (r#""command":["","x"]"#.into(), "/command", InvalidValue),
            (r#""command":["a","x\u0000"]"#.into(), "/command/1", InvalidValue),
            (format!(r#""command":["{long}"]"#), "/command", TooLong),
            (format!(r#""command":[{}"a"]"#, r#""a","#.repeat(1_000)), "/command", TooMany),
            (r#""command":["a"],"env":{"A=B":""}"#.into(), "/env/A=B", InvalidValue),
            (r#""command":["a"],"env":{"1A":""}"#.into(), "/env/1A", InvalidValue),
            (r#""command":["a"],"env":{"A":"\u0000"}"#.into(), "/env/A", InvalidValue),
            (r#""command":["a"],"env":{"TICKWHEEL_TOKEN":"x"}"#.into(), "/env/TICKWHEEL_TOKEN", Reserved),
            (format!(r#""command":["a"],"env":{{"A":"{long}"}}"#), "/env", TooLong),
            (r#""command":["a"],"cwd":"srv""#.into(), "/cwd", InvalidValue),
            (r#""command":["a"],"exit_codes":{"retry":[256]}"#.into(), "/exit_codes/retry/0", OutOfRange),
            (r#""command":["a"],"exit_codes":{"fail":[1,0]}"#.into(), "/exit_codes/fail/1", OutOfRange),
            (
                r#""command":["a"],"exit_codes":{"retry":[4],"fail":[4]}"#.into(),
                "/exit_codes/fail/0",
                Conflict,
            ),
            (
                r#""command":["a"],"exit_codes":{"snooze":{"codes":[],"delay":5}}"#.into(),
                "/exit_codes/snooze/codes",
                InvalidValue,
            ),
            (
                r#""command":["a"],"exit_codes":{"snooze":{"codes":[7],"delay":"999ms"}}"#.into(),
                "/exit_codes/snooze/delay",
                OutOfRange,
            ),
        ] {
            let found = broken(&format!("{{{rest}}}"));
            assert_eq!(found, [(format!("/target/process{pointer}"), code)]);
        }
    }
}
