//! What the end of a process means: its exit code decides; what it printed last becomes the result or the explanation.
//! Pure.

use serde_json::{Value, json};
use tickwheel_core::job::{ExitCodes, ExitMeaning};
use tickwheel_core::settle::Outcome;
use tickwheel_core::{Failure, JsonText};

use super::output::Tail;
use crate::outbound::readable_text;

/// How much of what was printed goes into a failure's sentence.
const EXPLANATION_LINES_MAX: usize = 20;
const EXPLANATION_CHARS_MAX: usize = 2_000;
/// A shell reports a child that a signal ended as this and the signal's number.
const SIGNAL_BASE: i32 = 128;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// With a code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
}

/// What follows from it.
pub(super) fn outcome(ended: Ended, rules: &ExitCodes, stdout: &mut Tail, stderr: &mut Tail) -> Outcome {
    let code = match ended {
        Ended::Exited(code) => code,
        Ended::Signalled(signal) => SIGNAL_BASE + signal,
    };
    let failed = |retryable, stdout: &mut Tail, stderr: &mut Tail| Outcome::Failed {
        failure: failure(ended, stdout, stderr),
        retryable,
        retry_after: None,
    };
    match rules.meaning(code) {
        ExitMeaning::Done => Outcome::Completed { result: result(stdout) },
        ExitMeaning::Snooze { again_in } => Outcome::Snoozed { again_in },
        ExitMeaning::Retry => failed(true, stdout, stderr),
        ExitMeaning::Fail => failed(false, stdout, stderr),
    }
}

fn failure(ended: Ended, stdout: &mut Tail, stderr: &mut Tail) -> Failure {
    let (code, what) = match ended {
        Ended::Exited(code) => ("exit_code", format!("the command exited with {code}")),
        Ended::Signalled(signal) => {
            ("signalled", format!("the command was ended by {}", signal_name(signal)))
        }
    };
    let said = last_lines(stderr.bytes());
    let said = if said.is_empty() { last_lines(stdout.bytes()) } else { said };
    let separator = if said.is_empty() { "" } else { ": " };
    Failure::new(code, format!("{what}{separator}{said}"))
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU, because it used up its processor time",
        25 => "SIGXFSZ",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// The last line on standard output if it is JSON, else the last one that is a JSON object or array, else all that was
/// kept of it, as a text. A number or a word among other lines says nothing.
fn result(stdout: &mut Tail) -> Option<JsonText> {
    let is_cut = stdout.is_cut();
    let bytes = stdout.bytes();
    let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    if is_cut {
        // The first one may be the end of a longer one.
        lines.remove(0);
    }
    lines.retain(|line| !line.trim_ascii().is_empty());
    let last = lines.last().and_then(|line| as_json(line));
    let is_compound = |line: &&&[u8]| matches!(line.trim_ascii().first(), Some(b'{' | b'['));
    let compound = || lines.iter().rev().filter(is_compound).find_map(|line| as_json(line));
    if let Some(json) = last.or_else(compound) {
        return Some(json);
    }
    let text = readable_text(bytes.trim_ascii_end());
    if text.is_empty() {
        return None;
    }
    let value = if is_cut { json!({"truncated": true, "captured": text}) } else { Value::String(text) };
    Some(JsonText::from_checked(value.to_string()))
}

/// Fully parsed: whoever reads the result later must not stumble over its depth or its numbers.
fn as_json(line: &[u8]) -> Option<JsonText> {
    let text = std::str::from_utf8(line.trim_ascii()).ok()?;
    serde_json::from_str::<Value>(text).ok().map(|_| JsonText::from_checked(text))
}

/// Fit for a sentence and for every store: no control characters except line ends and tabs.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_printable = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let first = lines.len().saturating_sub(EXPLANATION_LINES_MAX);
    let text: String = lines[first..].join("\n").chars().filter(is_printable).collect();
    let text = text.trim();
    match text.char_indices().rev().nth(EXPLANATION_CHARS_MAX - 1) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn tail(text: &[u8], bytes_max: usize) -> Tail {
        let mut tail = Tail::new(bytes_max);
        super::super::output::read_all(text, &mut tail, |_| {}).await.unwrap();
        tail
    }

    async fn completed(stdout: &[u8], bytes_max: usize) -> Option<String> {
        let (mut stdout, mut stderr) = (tail(stdout, bytes_max).await, tail(b"noise", 100).await);
        match outcome(Ended::Exited(0), &ExitCodes::default(), &mut stdout, &mut stderr) {
            Outcome::Completed { result } => result.map(|json| json.as_str().to_owned()),
            other => panic!("{other:?}"),
        }
    }

    async fn failed(ended: Ended, rules: &ExitCodes, stdout: &[u8], stderr: &[u8]) -> (Failure, bool) {
        let (mut stdout, mut stderr) = (tail(stdout, 10_000).await, tail(stderr, 10_000).await);
        match outcome(ended, rules, &mut stdout, &mut stderr) {
            Outcome::Failed { failure, retryable, retry_after: None } => (failure, retryable),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_result_is_the_last_line_that_is_json() {
        for (printed, result) in [
            ("{\"rows\": 5}\n", Some("{\"rows\": 5}")),
            ("{\"a\":1}\n  [2]  \r\ndone\n\n", Some("[2]")),
            ("working\n3", Some("3")),
            ("3\nworking", Some("\"3\\nworking\"")),
            ("{\"a\": 1}\n3\nworking", Some("{\"a\": 1}")),
            ("null\n", Some("null")),
            ("all done\n", Some("\"all done\"")),
            ("a\nb\n", Some("\"a\\nb\"")),
            ("{\"cut\":\n", Some("\"{\\\"cut\\\":\"")),
            ("\n \n", None),
            ("", None),
        ] {
            assert_eq!(completed(printed.as_bytes(), 1_000).await.as_deref(), result, "{printed:?}");
        }
    }

    #[tokio::test]
    async fn of_long_output_the_end_counts() {
        let mut long = vec![b'x'; 1_000];
        long.extend_from_slice(b"\n7\n");
        assert_eq!(completed(&long, 100).await.as_deref(), Some("7"));
        // What looks like a number may be the end of a word.
        assert_eq!(completed(b"abc12", 2).await.as_deref(), Some(r#"{"captured":"12","truncated":true}"#));
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_do_no_harm() {
        assert_eq!(completed(b"\xff\0\xfe\n", 100).await.as_deref(), Some("\"\u{fffd}\\u0000\u{fffd}\""));
        let (failure, _) = failed(Ended::Exited(1), &ExitCodes::default(), b"", b"a\0\x1b[31mb\xff\n").await;
        assert_eq!(failure.message, "the command exited with 1: a[31mb\u{fffd}");
    }

    #[tokio::test]
    async fn a_failure_has_the_code_and_the_last_words() {
        let rules = ExitCodes { fail: vec![2, 139], ..ExitCodes::default() };
        let (failure, retryable) = failed(Ended::Exited(1), &rules, b"out", b"one\ntwo\n").await;
        let message = "the command exited with 1: one\ntwo";
        assert_eq!((failure, retryable), (Failure::new("exit_code", message), true));
        let (failure, retryable) = failed(Ended::Exited(2), &rules, b"out\n", b"").await;
        assert_eq!((failure.message.as_str(), retryable), ("the command exited with 2: out", false));
        let (failure, retryable) = failed(Ended::Signalled(11), &rules, b"", b"").await;
        let message = "the command was ended by signal 11 (SIGSEGV)";
        assert_eq!((failure, retryable), (Failure::new("signalled", message), false));
    }

    #[tokio::test]
    async fn an_explanation_is_short() {
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let (failure, _) = failed(Ended::Exited(1), &ExitCodes::default(), b"", many.as_bytes()).await;
        assert!(failure.message.starts_with("the command exited with 1: line 80\n"), "{failure:?}");
        let (failure, _) =
            failed(Ended::Exited(1), &ExitCodes::default(), b"", "é".repeat(5_000).as_bytes()).await;
        assert!(failure.message.chars().count() < EXPLANATION_CHARS_MAX + 40, "{failure:?}");
        assert!(failure.message.ends_with("éé"));
    }

    #[tokio::test]
    async fn a_code_can_ask_for_more_time() {
        let rules = ExitCodes { snooze: vec![75], snooze_ms: 9_000, ..ExitCodes::default() };
        let (mut stdout, mut stderr) = (Tail::new(1), Tail::new(1));
        let outcome = outcome(Ended::Exited(75), &rules, &mut stdout, &mut stderr);
        assert_eq!(outcome, Outcome::Snoozed { again_in: Duration::from_secs(9) });
    }
}
