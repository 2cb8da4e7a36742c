//! Backfills: making jobs for a past range of a schedule on request, and the progress of doing so.
//!
//! Deliberately not here: which firings a range has (the domain decides), and whether a time is past (the server
//! decides).

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::{Priority, words};
use crate::problem::FieldCode;
use crate::time::Time;
use crate::validate::{Rules, Validate};

/// How many jobs per second a backfill may make.
pub const RATE_RANGE: RangeInclusive<u32> = 1..=1_000;
/// How many jobs per second a backfill makes unless the request says otherwise.
pub const RATE_DEFAULT: u32 = 10;

words! {
    /// The state of a backfill.
    BackfillStatus {
        /// It is making jobs, or waits to.
        Running = "running",
        /// It has processed every firing of the range.
        Completed = "completed",
        /// It was cancelled on request.
        Cancelled = "cancelled",
    }
}

words! {
    /// What a backfill waits for.
    BackfillWait {
        /// For a job of the schedule to end, because jobs of this schedule may not overlap.
        Overlap = "overlap",
        /// For the schedule to be resumed.
        Paused = "paused",
    }
}

/// A request to make a job for every firing in a range that has none. `from` and `to` are required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillSchedule {
    /// The start of the range, inclusive.
    pub from: Time,
    /// The end of the range, inclusive. It must be in the past.
    pub to: Time,
    /// How many jobs per second it may make. Default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000)]
    pub rate: Option<u32>,
    /// The priority of its jobs. Default: that of the schedule's jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Whether to only report what the backfill would do. Default `false`.
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

/// What a backfill would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPreview {
    /// The start of the range.
    pub from: Time,
    /// The end of the range, or the time up to which the schedule has been processed, if that is earlier.
    pub to: Time,
    /// How many firings the range has.
    pub count: u64,
    /// The first of these firings.
    pub first: Option<Time>,
    /// The last of these firings.
    pub last: Option<Time>,
    /// How many of these firings already have a job. They get no second one.
    pub already_fired: u64,
}

/// A backfill and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Backfill {
    /// Its state.
    pub status: BackfillStatus,
    /// The start of the range.
    pub from: Time,
    /// The end of the range.
    pub to: Time,
    /// How many jobs per second it may make.
    pub rate: u32,
    /// The priority of its jobs. `null`: that of the schedule's jobs.
    pub priority: Option<Priority>,
    /// How many firings the range has.
    pub count: u64,
    /// How many jobs it has made.
    pub made: u64,
    /// How many firings already had a job and got no second one.
    pub already_fired: u64,
    /// How many firings it has yet to process.
    pub left: u64,
    /// What it waits for. `null` while it makes jobs and after it has ended.
    pub waiting: Option<BackfillWait>,
    /// The next firing it will process.
    pub next_time: Option<Time>,
    /// When it was requested.
    pub requested_at: Time,
    /// When it completed or was cancelled.
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
