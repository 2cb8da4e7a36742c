//! Cron expressions: asking when one would fire without storing anything, and the options of a schedule where the
//! calendar is ambiguous.
//!
//! Deliberately not here: the language itself. The domain decides whether a text is an expression and a name is a zone.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document;
use crate::job::words;
use crate::local_time::LocalTime;
use crate::problem::FieldCode;
use crate::time::{Span, Time};
use crate::validate::{Rules, Validate};

/// How many firings an answer shows unless the request says otherwise.
pub const COUNT_DEFAULT: u32 = 5;
/// How many firings a request may ask for.
pub const COUNT_RANGE: RangeInclusive<u32> = 1..=1000;
/// The time zone unless the request names one.
pub const TIMEZONE_DEFAULT: &str = "UTC";

words! {
    /// What happens to a fixed local time that the clock skips.
    DstGap {
        /// It fires at the first instant after the gap. Several times in one gap fire once. The default.
        RunAfter = "run_after",
        /// It does not fire.
        Skip = "skip",
        /// It fires as long after the change as it would have without it: 02:30 becomes 03:30.
        Shift = "shift",
    }
}

words! {
    /// What happens to a fixed local time that occurs twice.
    DstFold {
        /// It fires at the first occurrence. The default.
        Once = "once",
        /// It fires at the second occurrence.
        Last = "last",
        /// It fires at both.
        Both = "both",
    }
}

words! {
    /// How day-of-month and day-of-week combine when both are restricted.
    DayLogic {
        /// A day matches if either field matches. If one of the fields starts with `*` or `?`, both must match. The
        /// default.
        Or = "or",
        /// A day matches only if both fields match.
        And = "and",
    }
}

words! {
    /// What a clock change does to local times.
    ClockChange {
        /// The clock goes forward: some local times do not exist.
        Gap = "gap",
        /// The clock goes back: some local times occur twice.
        Fold = "fold",
    }
}

/// A question: when would this expression fire? Either `cron` or `every` is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewCron {
    /// The expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
    #[schema(value_type = Option<document::Cron>, example = "30 2 * * *")]
    pub cron: Option<String>,
    /// An interval instead of an expression. It counts from 1970-01-01T00:00:00Z.
    pub every: Option<Span>,
    /// The IANA name of the time zone for local times. Default `UTC`.
    #[schema(value_type = Option<document::TimeZone>, example = "America/New_York")]
    pub timezone: Option<String>,
    /// What happens to times that the clock skips. Default `run_after`.
    pub dst_gap: Option<DstGap>,
    /// What happens to times that occur twice. Default `once`.
    pub dst_fold: Option<DstFold>,
    /// How the two day fields combine. Default `or`.
    pub day_logic: Option<DayLogic>,
    /// How many firings to show. Default 5.
    #[schema(minimum = 1, maximum = 1000)]
    pub count: Option<u32>,
    /// Show only firings after this time. Default: now.
    pub after: Option<Time>,
}

impl Validate for PreviewCron {
    fn check(&self, rules: &mut Rules<'_>) {
        if self.cron.is_some() && self.every.is_some() {
            rules.broken("/every", FieldCode::Conflict, "cannot be given together with cron");
        }
        if self.count.is_some_and(|count| !COUNT_RANGE.contains(&count)) {
            let (least, most) = (COUNT_RANGE.start(), COUNT_RANGE.end());
            rules.broken("/count", FieldCode::OutOfRange, format!("must be from {least} to {most}"));
        }
    }
}

/// When an expression fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CronPreview {
    /// What the expression means, in words.
    #[schema(example = "at 02:30 every day")]
    pub description: String,
    /// The time zone, as the time-zone database spells it.
    #[schema(example = "America/New_York")]
    pub timezone: String,
    /// The release of the IANA time-zone database that the server uses.
    #[schema(example = "2026a")]
    pub tzdb_version: String,
    /// The answer shows firings after this time.
    pub after: Time,
    /// Whether the expression never fires after that time.
    pub never: bool,
    /// The next firings in order, with the offset of the zone.
    pub next: Vec<LocalTime>,
    /// The next clock change of the zone. `null` if none is known, or if the expression never fires.
    pub next_zone_change: Option<ZoneChange>,
}

/// A clock change of a time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneChange {
    /// The first moment of the new offset, written with that offset.
    pub at: LocalTime,
    /// Whether the clock goes forward (`gap`) or back (`fold`).
    pub kind: ClockChange,
    /// The offset before the change.
    #[schema(example = "-05:00")]
    pub offset_before: String,
    /// The offset after the change.
    #[schema(example = "-04:00")]
    pub offset_after: String,
    /// What the change does to the firings, as a sentence.
    pub effect: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn broken(request: PreviewCron) -> Vec<String> {
        match request.validate(&Limits::default()) {
            Ok(()) => Vec::new(),
            Err(problem) => problem.errors.into_iter().map(|error| error.pointer).collect(),
        }
    }

    #[test]
    fn an_expression_and_an_interval_exclude_each_other() {
        let cron = PreviewCron { cron: Some("@daily".into()), ..PreviewCron::default() };
        assert_eq!(broken(cron.clone()), [""; 0]);
        assert_eq!(broken(PreviewCron { every: Some(Span::from_millis(1_000)), ..cron }), ["/every"]);
    }

    #[test]
    fn the_number_of_firings_has_a_bound() {
        for (count, pointers) in [(0, vec!["/count"]), (1, vec![]), (1000, vec![]), (1001, vec!["/count"])] {
            let asked = PreviewCron { count: Some(count), ..PreviewCron::default() };
            assert_eq!(broken(asked), pointers, "{count}");
        }
    }
}
