//! Backfills: making up for a past range of a schedule on request, and how far that has come.
//!
//! Deliberately not here: which firings a range has, and whether a time is past. The first is the domain's to say, the second the
//! server's.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::{Priority, words};
use crate::problem::FieldCode;
use crate::time::Time;
use crate::validate::{Rules, Validate};

/// How many jobs a second a backfill may make.
pub const RATE_RANGE: RangeInclusive<u32> = 1..=1_000;
/// How many it makes unless asked otherwise.
pub const RATE_DEFAULT: u32 = 10;

words! {
    /// How far a backfill is.
    BackfillStatus {
        /// It goes on.
        Running = "running",
        /// Every firing of the range was dealt with.
        Completed = "completed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
    }
}

words! {
    /// What a backfill waits for.
    BackfillWait {
        /// A job of the schedule that is not over: its jobs may not overlap.
        Overlap = "overlap",
        /// The schedule to be resumed.
        Paused = "paused",
    }
}

/// "Make a job for every firing of this range that has none." `from` and `to` are required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillSchedule {
    /// The first moment of the range.
    pub from: Time,
    /// The last moment of the range; it must be past.
    pub to: Time,
    /// So many jobs a second at the most. Default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub rate: Option<u32>,
    /// How urgent its jobs are. Default: as the schedule's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Only say what there is to do. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<bool>,
}

impl Validate for BackfillSchedule {
    fn check(&self, rules: &mut Rules<'_>) {
        if self.to < self.from {
            rules.broken("/to", FieldCode::Conflict, "must not be before from");
        }
        if self.rate.is_some_and(|rate| !RATE_RANGE.contains(&rate)) {
            let (least, most) = (RATE_RANGE.start(), RATE_RANGE.end());
            rules.broken("/rate", FieldCode::OutOfRange, format!("must be from {least} to {most}"));
        }
    }
}

/// What a backfill would have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPreview {
    /// The first moment of the range.
    pub from: Time,
    /// The last moment of the range, as far as the schedule has come.
    pub to: Time,
    /// How many firings the range has.
    pub count: u64,
    /// The first of them.
    pub first: Option<Time>,
    /// The last of them.
    pub last: Option<Time>,
    /// How many of them have their job already and are left alone.
    pub already_fired: u64,
}

/// A backfill and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backfill {
    /// How far it is.
    pub status: BackfillStatus,
    /// The first moment of the range.
    pub from: Time,
    /// The last moment of the range.
    pub to: Time,
    /// So many jobs a second at the most.
    pub rate: u32,
    /// How urgent its jobs are; `null`: as the schedule's.
    pub priority: Option<Priority>,
    /// How many firings the range has.
    pub count: u64,
    /// How many jobs it made.
    pub made: u64,
    /// How many firings had their job already and were left alone.
    pub already_fired: u64,
    /// How many firings are left to be looked at.
    pub left: u64,
    /// What it waits for; `null` if it makes jobs, or is over.
    pub waiting: Option<BackfillWait>,
    /// The next firing it is going to look at.
    pub next_time: Option<Time>,
    /// When it was asked for.
    pub requested_at: Time,
    /// When it was completed or cancelled.
    pub ended_at: Option<Time>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::limits::Limits;

    /// A good request with these fields on top.
    fn broken(fields: Value) -> Vec<(String, FieldCode)> {
        let mut request = json!({"from": "2026-11-01T00:00:00Z", "to": "2026-11-30T00:00:00Z"});
        for (name, value) in fields.as_object().expect("fields") {
            request[name] = value.clone();
        }
        let request: BackfillSchedule = serde_json::from_value(request).expect("well-formed");
        match request.validate(&Limits::default()) {
            Ok(()) => Vec::new(),
            Err(problem) => problem.errors.into_iter().map(|error| (error.pointer, error.code)).collect(),
        }
    }

    #[test]
    fn a_range_ends_where_it_begins_or_later() {
        assert_eq!(broken(json!({})), []);
        assert_eq!(broken(json!({"to": "2026-11-01T01:00:00+01:00"})), []);
        let before = json!({"to": "2026-10-31T23:59:59.999Z"});
        assert_eq!(broken(before), [("/to".to_owned(), FieldCode::Conflict)]);
    }

    #[test]
    fn the_rate_has_a_bound() {
        for rate in [0, 1_001] {
            assert_eq!(
                broken(json!({"rate": rate})),
                [("/rate".to_owned(), FieldCode::OutOfRange)],
                "{rate}"
            );
        }
        for rate in [1, RATE_DEFAULT, 1_000] {
            assert_eq!(broken(json!({"rate": rate})), [], "{rate}");
        }
    }
}
