//! Commands, between the wire and the core.

use tickwheel_core::job::{ExitCodes, ProcessTarget, Stdin};
use tickwheel_protocol::Span;
use tickwheel_protocol::process as wire;

/// The requested command.
pub(super) fn requested(process: wire::ProcessTarget) -> ProcessTarget {
    let wire::ExitCodes { retry, fail, snooze } = process.exit_codes;
    let (snooze, snooze_ms) =
        snooze.map_or_else(Default::default, |snooze| (snooze.codes, snooze.delay.as_millis()));
    // No other code passes validation.
    let codes = |codes: Vec<u32>| codes.into_iter().filter_map(|code| u8::try_from(code).ok()).collect();
    ProcessTarget {
        command: process.command,
        env: process.env.into_iter().collect(),
        cwd: process.cwd,
        stdin: match process.stdin {
            wire::Stdin::Payload => Stdin::Payload,
            wire::Stdin::Text => Stdin::Text,
            wire::Stdin::None => Stdin::None,
        },
        exit_codes: ExitCodes {
            retry: retry.map(codes),
            fail: codes(fail),
            snooze: codes(snooze),
            snooze_ms,
        },
    }
}

/// The same on the wire.
pub(super) fn answered(process: &ProcessTarget) -> wire::ProcessTarget {
    let ExitCodes { retry, fail, snooze, snooze_ms } = &process.exit_codes;
    let codes = |codes: &[u8]| codes.iter().copied().map(u32::from).collect();
    let snoozes = || wire::Snooze { codes: codes(snooze), delay: Span::from_millis(*snooze_ms) };
    wire::ProcessTarget {
        command: process.command.clone(),
        env: process.env.iter().cloned().collect(),
        cwd: process.cwd.clone(),
        stdin: match process.stdin {
            Stdin::Payload => wire::Stdin::Payload,
            Stdin::Text => wire::Stdin::Text,
            Stdin::None => wire::Stdin::None,
        },
        exit_codes: wire::ExitCodes {
            retry: retry.as_deref().map(codes),
            fail: codes(fail),
            snooze: (!snooze.is_empty()).then(snoozes),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_is_what_was_requested() {
        for json in [
            r#"{"command":["ls"],"stdin":"payload"}"#,
            r#"{"command":["sh","-c","x"],"env":{"A":"b"},"cwd":"/srv","stdin":"text","exit_codes":{"retry":[1],"fail":[2],"snooze":{"codes":[75],"delay":"60s"}}}"#,
            r#"{"command":["ls"],"stdin":"none","exit_codes":{"retry":[]}}"#,
        ] {
            let request: wire::ProcessTarget = serde_json::from_str(json).unwrap();
            let answer = answered(&requested(request));
            assert_eq!(serde_json::to_string(&answer).unwrap(), json);
        }
    }
}
