//! The firings of a schedule: its recurrence, read in its zone with its policies, between its start and its end.

use std::time::Duration;

use super::firing::CronFirings;
use super::policy::{DayLogic, DstFold, DstGap};
use super::recurrence::Recurrence;
use super::zone::{Zone, moment};
use crate::time::Timestamp;

/// Everything that decides when a schedule fires.
///
/// ```
/// use tickwheel_core::Timestamp;
/// use tickwheel_core::schedule::{Recurrence, Timetable, Zone};
///
/// // New York skips from 02:00 to 03:00 on 2026-03-08: the firing of 02:30 comes right after the gap.
/// let timetable = Timetable::new(Recurrence::parse("30 2 * * *")?, Zone::named("America/New_York")?);
/// let march_8 = Timestamp::from_millis(1_772_946_000_000);
/// let next = timetable.next_after(march_8).expect("a daily schedule has a next firing");
/// assert_eq!(timetable.zone.civil_at(next).to_string(), "2026-03-08T03:00:00");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timetable {
    /// What repeats.
    pub recurrence: Recurrence,
    /// Where the local times of a cron expression are read.
    pub zone: Zone,
    /// What becomes of fixed times that the clock jumps over.
    pub gap: DstGap,
    /// What becomes of fixed times that happen twice.
    pub fold: DstFold,
    /// How the two day fields go together.
    pub day_logic: DayLogic,
    /// No firing before it; it may be one.
    pub start_at: Option<Timestamp>,
    /// No firing after it; it may be one.
    pub end_at: Option<Timestamp>,
}

impl Timetable {
    /// With the default policies, without start or end.
    pub fn new(recurrence: Recurrence, zone: Zone) -> Self {
        Self {
            recurrence,
            zone,
            gap: DstGap::default(),
            fold: DstFold::default(),
            day_logic: DayLogic::default(),
            start_at: None,
            end_at: None,
        }
    }

    /// The first firing strictly after `after`; `None` if there will never be one.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = self.not_before_start(after);
        let next = match &self.recurrence {
            Recurrence::Every(interval) => interval.next_after(after),
            Recurrence::Cron(expr) => {
                let second = after.as_millis().div_euclid(1000).saturating_add(1);
                CronFirings::new(expr, self.zone, (self.gap, self.fold), self.day_logic)
                    .first_from(second)
                    .map(moment)
            }
        };
        next.filter(|at| self.end_at.is_none_or(|end| *at <= end))
    }

    /// The firings after `after` up to and including `until`, in order.
    pub fn firings(&self, after: Timestamp, until: Timestamp) -> Firings<'_> {
        Firings { timetable: self, last: after, until }
    }

    /// How many firings there are after `after` up to and including `until`; counting stops at `count_max`.
    pub fn count_between(&self, after: Timestamp, until: Timestamp, count_max: u64) -> u64 {
        match &self.recurrence {
            Recurrence::Every(interval) => {
                let until = self.end_at.map_or(until, |end| until.min(end));
                interval.count_between(self.not_before_start(after), until).min(count_max)
            }
            Recurrence::Cron(_) => {
                let count_max = usize::try_from(count_max).unwrap_or(usize::MAX);
                self.firings(after, until).take(count_max).count() as u64
            }
        }
    }

    fn not_before_start(&self, after: Timestamp) -> Timestamp {
        self.start_at.map_or(after, |start| after.max(start - Duration::from_millis(1)))
    }
}

/// The firings of a [`Timetable`] within a range.
#[derive(Clone, Debug)]
pub struct Firings<'a> {
    timetable: &'a Timetable,
    last: Timestamp,
    until: Timestamp,
}

impl Iterator for Firings<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let next = self.timetable.next_after(self.last).filter(|at| *at <= self.until)?;
        self.last = next;
        Some(next)
    }
}
