//! What an answer means: its status decides, its body becomes the result or the explanation. Pure.

use http::header::LOCATION;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tickwheel_core::{Failure, JsonText};

use crate::outbound::{Captured, excerpt, readable_text};

/// How much of an answer goes into a failure's sentence.
const EXCERPT_CHARS_MAX: usize = 500;

/// What a status means for the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The work is done.
    Completed,
    /// The target will report by itself.
    Accepted,
    /// The target sends us elsewhere; we do not go.
    Redirected,
    /// The work was not done.
    Failed {
        /// Whether trying again could help.
        retryable: bool,
    },
}

impl Verdict {
    pub(super) fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            202 => Self::Accepted,
            200..=299 => Self::Completed,
            300..=399 => Self::Redirected,
            408 | 425 | 429 | 500..=599 => Self::Failed { retryable: true },
            _ => Self::Failed { retryable: false },
        }
    }
}

/// The result a successful answer carries: JSON as it is, other text as a JSON string, and of a body over the limit its
/// beginning, marked as such.
pub(super) fn result_of(captured: &Captured) -> Option<JsonText> {
    let bytes = match captured {
        Captured::Cut(bytes) => {
            return Some(json_text(&json!({"truncated": true, "captured": readable_text(bytes)})));
        }
        Captured::Whole(bytes) => bytes.trim_ascii(),
    };
    if bytes.is_empty() {
        return None;
    }
    // Fully parsed, not only skimmed: whoever reads the result later must not stumble over its depth or its numbers.
    let checked = std::str::from_utf8(bytes).ok().filter(|text| serde_json::from_str::<Value>(text).is_ok());
    Some(match checked {
        Some(text) => JsonText::from_checked(text),
        None => json_text(&Value::String(readable_text(bytes))),
    })
}

/// The failure of an answer that is neither a success nor a redirect.
pub(super) fn bad_status(status: StatusCode, body: Option<&Captured>) -> Failure {
    let said = body.map(|captured| excerpt(captured.bytes(), EXCERPT_CHARS_MAX)).unwrap_or_default();
    let separator = if said.is_empty() { "" } else { ": " };
    Failure::new("http_status", format!("the target answered {status}{separator}{said}"))
}

/// The failure of an answer that points elsewhere.
pub(super) fn redirect_refused<B>(response: &Response<B>) -> Failure {
    let to = response
        .headers()
        .get(LOCATION)
        .map(|location| format!(" to {}", excerpt(location.as_bytes(), EXCERPT_CHARS_MAX)))
        .unwrap_or_default();
    let status = response.status();
    Failure::new("redirect_refused", format!("the target answered {status}: redirects{to} are not followed"))
}

fn json_text(value: &Value) -> JsonText {
    JsonText::from_checked(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(body: &'static [u8]) -> Option<String> {
        result_of(&Captured::Whole(body.into())).map(|json| json.as_str().to_owned())
    }

    #[test]
    fn every_status_has_its_meaning() {
        for code in 100..=999 {
            let expected = match code {
                202 => Verdict::Accepted,
                200..=299 => Verdict::Completed,
                300..=399 => Verdict::Redirected,
                408 | 425 | 429 | 500..=599 => Verdict::Failed { retryable: true },
                _ => Verdict::Failed { retryable: false },
            };
            assert_eq!(Verdict::of(StatusCode::from_u16(code).unwrap()), expected, "{code}");
        }
    }

    #[test]
    fn a_json_body_is_the_result_as_it_was_written() {
        for body in ["{\"b\": 1, \"a\": 1.50}", "[]", "null", "12345678901234567890123", "\"text\""] {
            assert_eq!(result(body.as_bytes()).as_deref(), Some(body));
        }
        assert_eq!(result(b"\r\n {} \n").as_deref(), Some("{}"));
    }

    #[test]
    fn any_other_body_becomes_a_json_string() {
        assert_eq!(result(b"done").as_deref(), Some("\"done\""));
        assert_eq!(result(b"{\"cut\":").as_deref(), Some(r#""{\"cut\":""#));
        assert_eq!(result(b"\xff\0").as_deref(), Some("\"\u{fffd}\\u0000\""));
        assert_eq!(result(b"").as_deref(), None);
        assert_eq!(result(b" \n").as_deref(), None);
    }

    #[test]
    fn json_that_nobody_could_read_back_is_kept_as_text() {
        let deep: &'static str = "[".repeat(5_000).leak();
        let deep = format!("{deep}{}", "]".repeat(5_000)).leak();
        for body in [&*deep, "1e999", r#""\ud800""#] {
            let kept = result(body.as_bytes()).unwrap();
            assert_eq!(serde_json::from_str::<String>(&kept).unwrap(), body);
        }
    }

    #[test]
    fn a_cut_body_is_marked_as_such() {
        let kept = result_of(&Captured::Cut("{\"a\":\"ä".as_bytes()[..7].to_vec().into())).unwrap();
        assert_eq!(kept.as_str(), r#"{"captured":"{\"a\":\"","truncated":true}"#);
    }
}
