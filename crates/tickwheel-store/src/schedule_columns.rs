//! How schedules, firings and calendars lie in columns, the same in both stores: the spec and the backfill as a JSON
//! document each, the rest of the progress as times, days and weekdays as lists with commas.
//!
//! Invariant: what was encoded here decodes to the same; anything else is [`StoreError::Corrupt`], never a panic.
//! Deliberately not here: SQL and the types of either database's driver.
//!
//! [`StoreError::Corrupt`]: tickwheel_core::ports::StoreError::Corrupt

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use tickwheel_core::ports::StoreResult;
use tickwheel_core::schedule::calendar::parse_date;
use tickwheel_core::schedule::{
    Backfill, Calendar, Fire, FireOutcome, FireReason, Schedule, ScheduleProgress, ScheduleSpec,
};
use tickwheel_core::{JobId, ScheduleId, Timestamp};
use uuid::Uuid;

use crate::columns::{decode_code, decode_partition};
use crate::error::corrupt;

/// A schedule as a row has it, borrowed from the row.
#[derive(Debug)]
pub(crate) struct ScheduleColumns<'row> {
    pub id: Uuid,
    pub partition: i64,
    pub tenant: &'row str,
    pub name: &'row str,
    pub spec: &'row str,
    pub paused: bool,
    pub pause_note: Option<&'row str>,
    pub revision: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub progress: ProgressColumns,
}

impl ScheduleColumns<'_> {
    /// The schedule they stand for.
    pub fn decode(&self) -> StoreResult<Schedule> {
        let id = ScheduleId::from_uuid(self.id);
        Ok(Schedule {
            id,
            partition: decode_partition(self.partition)?,
            tenant: self.tenant.into(),
            name: self.name.into(),
            spec: decode_schedule_spec(id, self.spec)?,
            paused: self.paused,
            pause_note: self.pause_note.map(str::to_owned),
            revision: decode_number("revision of a schedule", self.revision)?,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            progress: self.progress.decode(id)?,
        })
    }
}

/// How far a schedule has come, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct ProgressColumns {
    pub cursor_at: i64,
    pub next_at: Option<i64>,
    pub rolled_at: Option<i64>,
    pub held_at: Option<i64>,
    pub wake_at: Option<i64>,
    pub backfill: Option<String>,
}

impl From<&ScheduleProgress> for ProgressColumns {
    fn from(progress: &ScheduleProgress) -> Self {
        Self {
            cursor_at: progress.cursor.as_millis(),
            next_at: progress.next_at.map(Timestamp::as_millis),
            rolled_at: progress.rolled_at.map(Timestamp::as_millis),
            held_at: progress.held_at.map(Timestamp::as_millis),
            wake_at: progress.wake_at.map(Timestamp::as_millis),
            backfill: progress.backfill.as_ref().map(encode_backfill),
        }
    }
}

impl ProgressColumns {
    fn decode(&self, id: ScheduleId) -> StoreResult<ScheduleProgress> {
        Ok(ScheduleProgress {
            cursor: Timestamp::from_millis(self.cursor_at),
            next_at: self.next_at.map(Timestamp::from_millis),
            rolled_at: self.rolled_at.map(Timestamp::from_millis),
            held_at: self.held_at.map(Timestamp::from_millis),
            wake_at: self.wake_at.map(Timestamp::from_millis),
            backfill: self.backfill.as_deref().map(|text| decode_backfill(id, text)).transpose()?,
        })
    }
}

/// The record of a firing as a row has it.
#[derive(Debug)]
pub(crate) struct FireColumns {
    pub schedule_id: Uuid,
    pub nominal_at: i64,
    pub last_at: i64,
    pub count: i64,
    pub outcome: i64,
    pub reason: i64,
    pub job_id: Option<Uuid>,
    pub recorded_at: i64,
}

impl FireColumns {
    /// The record they stand for.
    pub fn decode(&self) -> StoreResult<Fire> {
        Ok(Fire {
            schedule_id: ScheduleId::from_uuid(self.schedule_id),
            nominal_at: Timestamp::from_millis(self.nominal_at),
            last_at: Timestamp::from_millis(self.last_at),
            count: decode_number("count of firings", self.count)?,
            outcome: decode_code("outcome of a firing", self.outcome, FireOutcome::from_code)?,
            reason: decode_code("reason of a firing", self.reason, FireReason::from_code)?,
            job_id: self.job_id.map(JobId::from_uuid),
            recorded_at: Timestamp::from_millis(self.recorded_at),
        })
    }
}

/// A calendar as a row has it, borrowed from the row.
#[derive(Debug)]
pub(crate) struct CalendarColumns<'row> {
    pub tenant: &'row str,
    pub name: &'row str,
    pub days: &'row str,
    pub weekdays: &'row str,
    pub updated_at: i64,
}

impl CalendarColumns<'_> {
    /// The calendar they stand for.
    pub fn decode(&self) -> StoreResult<Calendar> {
        Ok(Calendar {
            name: self.name.into(),
            tenant: self.tenant.into(),
            days: decode_list("day of a calendar", self.days, parse_date)?,
            weekdays: decode_list("weekday of a calendar", self.weekdays, |text| text.parse().ok())?,
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

/// The spec as JSON text.
pub(crate) fn encode_schedule_spec(spec: &ScheduleSpec) -> String {
    serde_json::to_string(spec)
        .expect("a spec has only string keys and finite numbers, or null for the others")
}

fn decode_schedule_spec(id: ScheduleId, text: &str) -> StoreResult<Arc<ScheduleSpec>> {
    let spec = serde_json::from_str(text);
    spec.map(Arc::new).map_err(|cause| corrupt(&format!("spec of the schedule {id}"), cause))
}

fn encode_backfill(backfill: &Backfill) -> String {
    serde_json::to_string(backfill).expect("a backfill has only string keys, words and whole numbers")
}

fn decode_backfill(id: ScheduleId, text: &str) -> StoreResult<Backfill> {
    serde_json::from_str(text).map_err(|cause| corrupt(&format!("backfill of the schedule {id}"), cause))
}

/// A revision or a count as a column has it: databases have no unsigned numbers, and neither ever comes near the end of
/// theirs.
pub(crate) fn encode_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number behind it.
pub(crate) fn decode_number(what: &str, number: i64) -> StoreResult<u64> {
    u64::try_from(number).map_err(|_| corrupt(what, number))
}

/// Days or weekdays, separated by commas.
pub(crate) fn encode_list<T: Display>(items: &BTreeSet<T>) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn decode_list<T: Ord>(
    what: &str,
    text: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> StoreResult<BTreeSet<T>> {
    let items = text.split(',').filter(|item| !item.is_empty());
    items.map(|item| parse(item).ok_or_else(|| corrupt(what, item))).collect()
}

#[cfg(test)]
mod tests {
    use tickwheel_core::ports::StoreError;
    use tickwheel_testkit::fixtures::{backfill, schedule};

    use super::*;

    fn columns() -> CalendarColumns<'static> {
        CalendarColumns {
            tenant: "acme",
            name: "holidays",
            days: "2026-12-25,2027-01-01",
            weekdays: "0,6",
            updated_at: 7,
        }
    }

    #[test]
    fn the_days_of_a_calendar_survive() {
        let calendar = columns().decode().expect("sound");
        assert_eq!(encode_list(&calendar.days), "2026-12-25,2027-01-01");
        assert_eq!(encode_list(&calendar.weekdays), "0,6");
        let empty = CalendarColumns { days: "", weekdays: "", ..columns() }.decode().expect("sound");
        assert!(empty.days.is_empty() && empty.weekdays.is_empty());
        assert_eq!(encode_list(&empty.days), "");
    }

    #[test]
    fn days_that_are_none_are_corrupt() {
        for (days, weekdays) in [("2026-02-30", ""), ("tomorrow", ""), ("", "Sunday"), ("", "-1")] {
            let read = CalendarColumns { days, weekdays, ..columns() }.decode();
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
        }
    }

    #[test]
    fn a_backfill_that_makes_no_sense_is_corrupt_and_says_whose_it_is() {
        let schedule = schedule("@daily").build();
        let backfill = Some(backfill());
        let progress = ScheduleProgress { backfill, ..schedule.progress };
        let columns = ProgressColumns::from(&progress);
        assert_eq!(columns.decode(schedule.id).expect("sound"), progress);
        for text in ["", "soon", "null", "{}", r#"{"state":"tired"}"#] {
            let odd = ProgressColumns { backfill: Some(text.to_owned()), ..columns.clone() };
            let read = odd.decode(schedule.id);
            let Err(StoreError::Corrupt(words)) = read else { panic!("{text}: {read:?}") };
            assert!(words.contains(&schedule.id.to_string()), "{words}");
        }
    }

    #[test]
    fn numbers_that_were_never_written_are_corrupt() {
        let sound = FireColumns {
            schedule_id: Uuid::nil(),
            nominal_at: 0,
            last_at: 0,
            count: 1,
            outcome: 0,
            reason: 0,
            job_id: None,
            recorded_at: 0,
        };
        assert_eq!(sound.decode().expect("sound").count, 1);
        for odd in [
            FireColumns { count: -1, ..sound },
            FireColumns { outcome: 99, ..sound },
            FireColumns { reason: -1, ..sound },
        ] {
            assert!(matches!(odd.decode(), Err(StoreError::Corrupt(_))), "{odd:?}");
        }
    }
}
