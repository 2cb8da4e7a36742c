//! Moments as they are written into headers and bodies: RFC 3339, UTC, milliseconds.

use tickwheel_core::Timestamp;

/// `2026-12-01T15:00:00.000Z`. Moments beyond the calendar (year 9999) are written as its last one.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let on_calendar = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(if at < Timestamp::EPOCH {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    });
    format!("{on_calendar:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc_with_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_796_137_200_000, "2026-12-01T15:00:00.000Z"),
            (1_796_137_200_042, "2026-12-01T15:00:00.042Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(Timestamp::from_millis(ms)), text);
        }
    }

    #[test]
    fn a_moment_beyond_the_calendar_does_not_panic() {
        assert!(rfc3339(Timestamp::MAX).starts_with("9999-12-30T"));
    }
}
