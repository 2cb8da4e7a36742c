//! Times and durations as they are written on the wire.
//!
//! A time is accepted with any offset and answered in UTC with milliseconds. Finer fractions are rounded up, so that
//! nothing starts too early.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{RefOr, schema::SchemaType};
use utoipa::{PartialSchema, ToSchema};

const MOMENT_EXPECTED: &str = "an RFC 3339 time with offset, such as \"2026-12-01T15:00:00Z\"";
/// What is expected of a moment that is well written but too far away.
pub(crate) const MOMENT_RANGE: &str = "a time from 1970-01-01T00:00:00Z to 9999-12-30T22:00:00Z";
const SPAN_EXPECTED: &str =
    "a duration: a number of seconds, or a string such as \"250ms\", \"30s\", \"5m\", \"4h\" or \"1d\"";

/// How a duration is written.
pub const SPAN_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)?$";
/// Characters of a duration: more digits than any that can be used.
pub const SPAN_CHARS_MAX: usize = 32;

/// A moment, to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// From milliseconds since the Unix epoch; what the calendar cannot write is moved to its edge.
    pub fn from_millis(ms: i64) -> Self {
        // The calendar's last second counts as nanoseconds, not as milliseconds: only its beginning can be written.
        Self(ms.clamp(Timestamp::MIN.as_second() * 1000, Timestamp::MAX.as_second() * 1000))
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

/// The text is not a moment that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotATime {
    /// It is not written like one.
    Malformed,
    /// It is before 1970, or at the very end of the calendar.
    OutOfRange,
}

impl NotATime {
    const fn expected(self) -> &'static str {
        match self {
            Self::Malformed => MOMENT_EXPECTED,
            Self::OutOfRange => MOMENT_RANGE,
        }
    }
}

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected())
    }
}

impl std::error::Error for NotATime {}

impl FromStr for Time {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        if !has_rfc3339_shape(text.as_bytes()) {
            return Err(NotATime::Malformed);
        }
        let moment: Timestamp = text.parse().map_err(|_| fault_of_unread(text))?;
        let ms = moment.as_nanosecond().div_euclid(1_000_000)
            + i128::from(moment.as_nanosecond().rem_euclid(1_000_000) > 0);
        match i64::try_from(ms) {
            Ok(ms) if ms >= 0 => Ok(Self::from_millis(ms)),
            _ => Err(NotATime::OutOfRange),
        }
    }
}

/// The calendar library ends within the year 9999 and does not say whether that is what it minds. If the same day and time
/// of another year without a 29 February can be read, it is.
fn fault_of_unread(text: &str) -> NotATime {
    let in_1999 = text.strip_prefix("9999").map(|rest| format!("1999{rest}"));
    match in_1999.is_some_and(|text| text.parse::<Timestamp>().is_ok()) {
        true => NotATime::OutOfRange,
        false => NotATime::Malformed,
    }
}

/// `YYYY-MM-DDTHH:MM:SS` at the start and no zone annotation: the calendar library takes more than the RFC does.
fn has_rfc3339_shape(text: &[u8]) -> bool {
    let start = text.get(..19).unwrap_or_default();
    let matches = |(byte, pattern): (&u8, &u8)| match pattern {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        other => byte == other,
    };
    start.len() == 19 && start.iter().zip(b"0000-00-00T00:00:00").all(matches) && !text.contains(&b'[')
}

impl Time {
    /// `2026-12-01T15:00:00.000Z`. By hand for the years of four digits: an answer has three moments a job.
    fn write<R>(self, then: impl FnOnce(&str) -> R) -> R {
        let moment = Timestamp::from_millisecond(self.0).expect("kept within the calendar since it was made");
        let at = Offset::UTC.to_datetime(moment);
        if at.year() < 0 {
            return then(&format!("{moment:.3}"));
        }
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let places: [(i32, std::ops::Range<usize>); 7] = [
            (at.year().into(), 0..4),
            (at.month().into(), 5..7),
            (at.day().into(), 8..10),
            (at.hour().into(), 11..13),
            (at.minute().into(), 14..16),
            (at.second().into(), 17..19),
            (at.millisecond().into(), 20..23),
        ];
        for (mut number, place) in places {
            for digit in text[place].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        then(std::str::from_utf8(&text).expect("digits"))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(|text| f.write_str(text))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl Visitor<'_> for TimeVisitor {
            type Value = Time;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(MOMENT_EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse()
                    .map_err(|fault: NotATime| E::invalid_value(Unexpected::Str(text), &fault.expected()))
            }
        }
        deserializer.deserialize_str(TimeVisitor)
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let string = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 with any offset; answered in UTC with milliseconds"));
        RefOr::T(Schema::Object(string.build()))
    }
}

impl ToSchema for Time {}

/// A duration, to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// From milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// In milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// As the standard library's duration.
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    fn from_seconds(seconds: f64) -> Option<Self> {
        let ms = seconds * 1000.0;
        // Beyond 2^53 a float no longer counts milliseconds; that is 285,000 years.
        if !(0.0..9.0e15).contains(&ms) {
            return None;
        }
        // 2.3 s must be 2,300 ms although 2.3 × 1000 is a hair less; what is truly finer goes up.
        let near = ms.round();
        let whole = if (ms - near).abs() < 1e-6 * ms.max(1.0) { near } else { ms.ceil() };
        Some(Self(whole as u64))
    }
}

/// The text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASpan;

impl fmt::Display for NotASpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {SPAN_EXPECTED}")
    }
}

impl std::error::Error for NotASpan {}

impl FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits_end);
        let seconds_per_unit = match unit {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(NotASpan),
        };
        let is_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if !is_digits(whole) || !is_digits(fraction) || text.len() > SPAN_CHARS_MAX {
            return Err(NotASpan);
        }
        let number: f64 = number.parse().map_err(|_| NotASpan)?;
        Self::from_seconds(number * seconds_per_unit).ok_or(NotASpan)
    }
}

impl fmt::Display for Span {
    /// In the largest of days, hours, seconds and milliseconds that needs no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0s"),
            ms if ms % 86_400_000 == 0 => write!(f, "{}d", ms / 86_400_000),
            ms if ms % 3_600_000 == 0 => write!(f, "{}h", ms / 3_600_000),
            ms if ms % 1000 == 0 => write!(f, "{}s", ms / 1000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpanVisitor;
        impl Visitor<'_> for SpanVisitor {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SPAN_EXPECTED)
            }
            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Span, E> {
                let ms = seconds.checked_mul(1000).filter(|ms| *ms < 9_000_000_000_000_000);
                ms.map(Span).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(seconds), &self))
            }
            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Span, E> {
                match u64::try_from(seconds) {
                    Ok(seconds) => self.visit_u64(seconds),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(seconds), &self)),
                }
            }
            fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Span, E> {
                Span::from_seconds(seconds).ok_or_else(|| E::invalid_value(Unexpected::Float(seconds), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(SpanVisitor)
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        let typed = |kind| ObjectBuilder::new().schema_type(SchemaType::Type(kind));
        let one_of = OneOfBuilder::new()
            .item(typed(Type::String).max_length(Some(SPAN_CHARS_MAX)).pattern(Some(SPAN_PATTERN)).build())
            .item(typed(Type::Number).minimum(Some(0)).build())
            .description(Some(
                "A number of seconds, or a string with a unit: ms, s, m, h or d; answered as a string",
            ));
        RefOr::T(Schema::OneOf(one_of.build()))
    }
}

impl ToSchema for Span {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_is_understood_and_utc_with_milliseconds_is_answered() {
        let answered = |text: &str| text.parse::<Time>().map(|time| time.to_string());
        assert_eq!(answered("2026-12-01T15:00:00Z").unwrap(), "2026-12-01T15:00:00.000Z");
        assert_eq!(answered("2026-12-01T15:00:00.25+05:30").unwrap(), "2026-12-01T09:30:00.250Z");
        assert_eq!(answered("1969-12-31T23:59:59.9995Z").unwrap(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn moments_are_written_as_the_calendar_library_writes_them() {
        let days =
            (-720_000_i64..2_900_000).step_by(997).map(|day| day * 86_400_000 + day.rem_euclid(86_400_000));
        for ms in days.chain([i64::MIN, -1, 0, 999, i64::MAX]) {
            let time = Time::from_millis(ms);
            let moment = Timestamp::from_millisecond(time.as_millis()).unwrap();
            assert_eq!(time.to_string(), format!("{moment:.3}"));
        }
    }

    #[test]
    fn a_moment_finer_than_a_millisecond_is_never_early() {
        assert_eq!("1970-01-01T00:00:00.000000001Z".parse::<Time>().unwrap().as_millis(), 1);
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "tomorrow",
            "2026-12-01",
            "2026-12-01T15:00:00",
            "2026-12-01T15Z",
            "20261201T150000Z",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-12-01T25:00:00Z",
            "99999-01-01T00:00:00Z",
            "2026-12-01T15:00:00-05:00[America/New_York]",
            "2026-12-01T15:00:00Zjunk",
            "9999-12-31T23:59:59",
            "9999-02-29T00:00:00Z",
        ] {
            assert_eq!(text.parse::<Time>(), Err(NotATime::Malformed), "{text}");
        }
    }

    #[test]
    fn a_moment_that_is_too_far_away_is_told_how_far_it_may_be() {
        for text in [
            "9999-12-31T23:59:59Z",
            "9999-12-30T22:00:01-00:01",
            "0000-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999Z",
        ] {
            assert_eq!(text.parse::<Time>(), Err(NotATime::OutOfRange), "{text}");
        }
        let json = serde_json::from_str::<Time>(r#""9999-12-31T23:59:59Z""#).unwrap_err().to_string();
        assert!(json.contains("from 1970-01-01T00:00:00Z to 9999-12-30T22:00:00Z"), "{json}");
    }

    #[test]
    fn both_ends_of_the_range_can_be_read() {
        for text in ["1970-01-01T00:00:00.000Z", "9999-12-30T22:00:00.000Z"] {
            assert_eq!(text.parse::<Time>().map(|time| time.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn durations_are_numbers_of_seconds_or_strings_with_a_unit() {
        let read = |json: &str| serde_json::from_str::<Span>(json).map(Span::as_millis).ok();
        assert_eq!(read("30"), Some(30_000));
        assert_eq!(read("2.3"), Some(2_300));
        assert_eq!(read("0.0001"), Some(1));
        assert_eq!(read("\"250ms\""), Some(250));
        assert_eq!(read("\"30s\""), Some(30_000));
        assert_eq!(read("\"5m\""), Some(300_000));
        assert_eq!(read("\"1.5h\""), Some(5_400_000));
        assert_eq!(read("\"1d\""), Some(86_400_000));
        for json in [
            "-1",
            "-0.5",
            "1e300",
            "\"\"",
            "\"s\"",
            "\"5 m\"",
            "\"-5s\"",
            "\"5w\"",
            "\"1.2.3s\"",
            "true",
            "null",
        ] {
            assert_eq!(read(json), None, "{json}");
        }
    }

    #[test]
    fn durations_are_answered_as_short_strings_that_can_be_read_back() {
        for (ms, text) in
            [(0, "0s"), (250, "250ms"), (300_000, "300s"), (3_600_000, "1h"), (172_800_000, "2d")]
        {
            let span = Span::from_millis(ms);
            assert_eq!(span.to_string(), text);
            assert_eq!(text.parse(), Ok(span));
        }
    }
}
