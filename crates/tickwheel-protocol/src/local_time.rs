//! Times with the offset of a place: what a clock on the wall shows there, and still one exact moment.
//!
//! Kept true: the text always names the exact moment. RFC 3339 has no seconds in offsets. Where a place had some
//! (Liberia until 1972), the offset is rounded and the local time moves with it.
//!
//! Deliberately not here: time zones. The caller knows which offset a place has at a moment.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::time::{NotATime, Time};

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// A time with the offset of a place: `2026-03-08T03:00:00-04:00`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalTime {
    at: Time,
    offset: Offset,
}

impl LocalTime {
    /// The moment, where clocks are `offset_s` seconds ahead of UTC. An offset of more than a day counts as none.
    pub fn new(at: Time, offset_s: i32) -> Self {
        let whole_minutes = (offset_s + 30).div_euclid(60) * 60;
        Self { at, offset: Offset::from_seconds(whole_minutes).unwrap_or(Offset::UTC) }
    }

    /// The moment itself.
    pub const fn at(self) -> Time {
        self.at
    }

    /// The day of the week there, such as `Mon`.
    pub fn weekday(self) -> &'static str {
        let from_sunday = self.clock().weekday().to_sunday_zero_offset();
        WEEKDAYS[from_sunday.unsigned_abs() as usize % WEEKDAYS.len()]
    }

    fn clock(self) -> DateTime {
        let moment = jiff::Timestamp::from_millisecond(self.at.as_millis())
            .expect("a `Time` is within the calendar since it was made");
        self.offset.to_datetime(moment)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.offset.seconds() / 60;
        let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
        write!(f, "{}{sign}{:02}:{:02}", self.clock(), minutes / 60, minutes % 60)
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LocalTime {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let at = text.parse()?;
        let offset = Pieces::parse(text).ok().and_then(|pieces| pieces.to_numeric_offset());
        Ok(Self::new(at, offset.ok_or(NotATime::Malformed)?.seconds()))
    }
}

impl Serialize for LocalTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LocalTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl PartialSchema for LocalTime {
    fn schema() -> RefOr<Schema> {
        let string = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 with the offset of the zone"));
        RefOr::T(Schema::Object(string.build()))
    }
}

impl ToSchema for LocalTime {}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(text: &str, offset_s: i32) -> LocalTime {
        LocalTime::new(text.parse().expect("a time"), offset_s)
    }

    #[test]
    fn a_moment_is_written_as_the_clock_there_shows_it() {
        for (utc, offset_s, written) in [
            ("2026-03-08T07:00:00Z", -4 * 3600, "2026-03-08T03:00:00-04:00"),
            ("2026-10-03T15:30:00Z", 11 * 3600, "2026-10-04T02:30:00+11:00"),
            ("2026-10-03T15:30:00Z", 37_800, "2026-10-04T02:00:00+10:30"),
            ("1971-01-01T00:30:00Z", -1800, "1971-01-01T00:00:00-00:30"),
            ("2026-01-01T00:00:00.25Z", 0, "2026-01-01T00:00:00.25+00:00"),
            ("9999-12-30T22:00:00Z", 14 * 3600, "9999-12-31T12:00:00+14:00"),
        ] {
            assert_eq!(local(utc, offset_s).to_string(), written);
        }
    }

    #[test]
    fn an_offset_with_seconds_is_rounded_and_the_moment_stays() {
        let monrovia = local("1971-06-01T12:44:30Z", -2670);
        assert_eq!(monrovia.to_string(), "1971-06-01T12:00:30-00:44");
        assert_eq!(monrovia.to_string().parse::<Time>(), Ok(monrovia.at()));
    }

    #[test]
    fn what_was_written_can_be_read_back() {
        for (utc, offset_s) in [("2026-03-08T07:00:00Z", -14_400), ("2026-01-01T00:00:00.001Z", 49_500)] {
            let time = local(utc, offset_s);
            let json = serde_json::to_string(&time).expect("a string");
            assert_eq!(serde_json::from_str::<LocalTime>(&json).ok(), Some(time));
        }
        assert_eq!("2026-01-01T00:00:00Z".parse(), Ok(local("2026-01-01T00:00:00Z", 0)));
        assert_eq!("2026-01-01T00:00:00".parse::<LocalTime>(), Err(NotATime::Malformed));
    }

    #[test]
    fn the_day_of_the_week_is_that_of_the_place() {
        assert_eq!(local("2026-03-08T02:00:00Z", 0).weekday(), "Sun");
        assert_eq!(local("2026-03-08T02:00:00Z", -5 * 3600).weekday(), "Sat");
    }
}
