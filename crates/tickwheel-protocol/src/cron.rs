//! Cron expressions: asking when one would fire, without storing anything; and the choices a schedule has where the calendar
//! leaves room for them.
//!
//! Deliberately not here: the language itself. Whether a text is an expression and a name a zone is the domain's to say.

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

/// How many firings are shown unless asked otherwise.
pub const COUNT_DEFAULT: u32 = 5;
/// How many firings may be asked for.
pub const COUNT_RANGE: RangeInclusive<u32> = 1..=1000;
/// The zone in which times are read unless asked otherwise.
pub const TIMEZONE_DEFAULT: &str = "UTC";

words! {
    /// What becomes of a fixed local time that the clock jumps over.
    DstGap {
        /// It fires at the first instant after the gap; several in one gap become one firing. The default.
        RunAfter = "run_after",
        /// It does not fire.
        Skip = "skip",
        /// It fires as long after the jump as it would have without it: 02:30 becomes 03:30.
        Shift = "shift",
    }
}

words! {
    /// What becomes of a fixed local time that happens twice.
    DstFold {
        /// It fires the first time. The default.
        Once = "once",
        /// It fires the second time.
        Last = "last",
        /// It fires both times.
        Both = "both",
    }
}

words! {
    /// How day-of-month and day-of-week go together when both are restricted.
    DayLogic {
        /// A day matches if either does; if one of the fields starts with `*` or `?`, both must. The default.
        Or = "or",
        /// A day matches only if both do.
        And = "and",
    }
}

words! {
    /// What a change of the clocks does to local times.
    ClockChange {
        /// The clock is put forward: some local times do not exist.
        Gap = "gap",
        /// The clock is put back: some local times happen twice.
        Fold = "fold",
    }
}

/// "When would this fire?" Either `cron` or `every` is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewCron {
    /// The expression: five fields, six with leading seconds, a nickname such as `@daily`, or `@every 90s`.
    #[schema(value_type = Option<document::Cron>, example = "30 2 * * *")]
    pub cron: Option<String>,
    /// An interval instead of an expression, counted from 1970-01-01T00:00:00Z.
    pub every: Option<Span>,
    /// The IANA name of the zone in which local times are read. Default `UTC`.
    #[schema(value_type = Option<document::TimeZone>, example = "America/New_York")]
    pub timezone: Option<String>,
    /// What becomes of times that the clock jumps over. Default `run_after`.
    pub dst_gap: Option<DstGap>,
    /// What becomes of times that happen twice. Default `once`.
    pub dst_fold: Option<DstFold>,
    /// How the two day fields go together. Default `or`.
    pub day_logic: Option<DayLogic>,
    /// How many firings to show. Default 5.
    #[schema(minimum = 1, maximum = 1000)]
    pub count: Option<u32>,
    /// Only firings after it are shown. Default: now.
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
    /// What it means, in words.
    #[schema(example = "at 02:30 every day")]
    pub description: String,
    /// The zone, as the database writes its name.
    #[schema(example = "America/New_York")]
    pub timezone: String,
    /// The release of the IANA time-zone database that was asked.
    #[schema(example = "2026a")]
    pub tzdb_version: String,
    /// The moment after which firings were looked for.
    pub after: Time,
    /// Whether there is no firing at all after that moment.
    pub never: bool,
    /// The next firings, in order, with the zone's offset.
    pub next: Vec<LocalTime>,
    /// The next change of the zone's clocks; `null` if none is known, or if nothing fires.
    pub next_zone_change: Option<ZoneChange>,
}

/// A change of the clocks of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneChange {
    /// The first moment of the new offset, written with it.
    pub at: LocalTime,
    /// Forward (`gap`) or back (`fold`).
    pub kind: ClockChange,
    /// The offset until then.
    #[schema(example = "-05:00")]
    pub offset_before: String,
    /// The offset from then on.
    #[schema(example = "-04:00")]
    pub offset_after: String,
    /// What it does to the firings, in a sentence.
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
