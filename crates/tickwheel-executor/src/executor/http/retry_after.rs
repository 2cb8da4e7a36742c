//! When a target wants to be asked again: `Retry-After`, in seconds or as a date.
//!
//! Absurd values are passed on as they are: how long is too long is the core's decision.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::fmt::rfc2822;
use tickwheel_core::Timestamp;

/// How long from `now`; `None` if the target does not say or cannot be understood. A date that has passed means at
/// once.
pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp::from_millis(date.as_millisecond()).since(now))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read_at(now_s: i64, value: &'static str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
        read(&headers, Timestamp::from_millis(now_s * 1000))
    }

    #[test]
    fn seconds_are_understood_however_many() {
        assert_eq!(read_at(0, "120"), Some(Duration::from_secs(120)));
        assert_eq!(read_at(0, " 0 "), Some(Duration::ZERO));
        assert_eq!(read_at(0, "1000000000"), Some(Duration::from_secs(1_000_000_000)));
        assert_eq!(read_at(0, "99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
    }

    #[test]
    fn a_date_is_a_wait_from_now_and_a_past_one_none_at_all() {
        assert_eq!(read_at(784_111_777 - 90, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(90)));
        assert_eq!(read_at(784_111_777 + 90, "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
    }

    #[test]
    fn what_cannot_be_understood_says_nothing() {
        for value in ["", "soon", "-5", "1.5", "+5", "2026-12-01T15:00:00Z", "Mon, 06 Nov 1994 08:49:37 GMT"]
        {
            assert_eq!(read_at(0, value), None, "{value}");
        }
        assert_eq!(read(&HeaderMap::new(), Timestamp::EPOCH), None);
    }
}
