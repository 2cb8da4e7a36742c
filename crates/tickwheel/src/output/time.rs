//! Times as people say them: `in 5m`, `2s ago`.

use std::time::{SystemTime, UNIX_EPOCH};

use tickwheel_protocol::Time;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// What this machine's clock says.
pub fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// How far `at` is from `now`.
pub fn relative(at: Time, now: Time) -> String {
    let distance = at.as_millis() - now.as_millis();
    match distance {
        0 => "now".into(),
        1.. => format!("in {}", length(distance)),
        _ => format!("{} ago", length(-distance)),
    }
}

/// A length of time in its largest unit, with the next smaller one where that says something. Rounded: 59.99 minutes
/// are an hour.
pub fn length(ms: i64) -> String {
    let ms = rounded(ms);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| match ms % large / small {
        rest if rest > 0 && ms / large < 10 => format!("{}{large_unit} {rest}{small_unit}", ms / large),
        _ => format!("{}{large_unit}", ms / large),
    };
    match ms {
        ..SECOND => format!("{ms}ms"),
        SECOND..MINUTE => format!("{}s", ms / SECOND),
        MINUTE..HOUR => two(MINUTE, "m", SECOND, "s"),
        HOUR..DAY => two(HOUR, "h", MINUTE, "m"),
        _ => two(DAY, "d", HOUR, "h"),
    }
}

/// To the nearest of the smallest unit that is going to be said.
fn rounded(ms: i64) -> i64 {
    let unit = match ms {
        ..SECOND => return ms,
        SECOND..HOUR => SECOND,
        HOUR..DAY => MINUTE,
        _ => HOUR,
    };
    let near = (ms + unit / 2) / unit * unit;
    // Rounding may reach a larger unit, of which less is said.
    if near == ms { ms } else { rounded(near) }
}

/// A moment without its milliseconds, if it has none.
pub fn short(at: Time) -> String {
    at.to_string().replace(".000Z", "Z")
}

/// A moment in full, with how far it is from `now`.
pub fn moment(at: Time, now: Time) -> String {
    format!("{at} ({})", relative(at, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn distances_are_said_in_their_largest_units() {
        for (ms, said) in [
            (0, "now"),
            (250, "in 250ms"),
            (-2_000, "2s ago"),
            (5 * MINUTE, "in 5m"),
            (5 * MINUTE + 30 * SECOND, "in 5m 30s"),
            (-(45 * MINUTE + 30 * SECOND), "45m ago"),
            (HOUR - 40, "in 1h"),
            (DAY - SECOND, "in 1d"),
            (5 * MINUTE - 30, "in 5m"),
            (HOUR + MINUTE, "in 1h 1m"),
            (-(3 * DAY), "3d ago"),
            (400 * DAY, "in 400d"),
        ] {
            assert_eq!(relative(at(DAY + ms), at(DAY)), said);
        }
    }

    #[test]
    fn only_milliseconds_that_say_nothing_are_left_out() {
        assert_eq!(short(at(1_000)), "1970-01-01T00:00:01Z");
        assert_eq!(short(at(1_500)), "1970-01-01T00:00:01.500Z");
    }

    #[test]
    fn a_moment_is_given_in_full_with_milliseconds() {
        assert_eq!(moment(at(1_500), at(0)), "1970-01-01T00:00:01.500Z (in 2s)");
    }
}
