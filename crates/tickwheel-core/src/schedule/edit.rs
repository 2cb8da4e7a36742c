//! What becomes of a schedule when somebody changes it.
//!
//! Pure. Whoever carries it out has brought the schedule up to date first, so that what was due before the change was
//! decided by the old spec, and writes the result only if nothing came in between.

use std::sync::Arc;
use std::time::Duration;

use super::backfill::{self, Backfill, BackfillRequest, NoBackfill};
use super::definition::{BadTimetable, Schedule, ScheduleProgress, ScheduleSpec};
use super::open_days::Calendars;
use super::plan::begin;
use super::timetable::Timetable;
use crate::time::Timestamp;

/// A request to change a schedule.
#[derive(Clone, Debug)]
pub enum ScheduleEdit {
    /// The spec is replaced; takes effect for the next firing.
    Spec {
        /// By this,
        spec: Arc<ScheduleSpec>,
        /// if it is still this one.
        instead_of: Arc<ScheduleSpec>,
    },
    /// The schedule becomes what somebody declared, whatever it was.
    Put {
        /// The whole spec.
        spec: Arc<ScheduleSpec>,
        /// Whether it is paused. `None`: as it is, for a pause is not part of what is declared.
        paused: Option<bool>,
    },
    /// Nothing fires until it is resumed.
    Pause {
        /// Why.
        note: Option<String>,
    },
    /// It goes on with the next firing.
    Resume,
    /// A past range is made up for.
    Backfill(BackfillRequest),
    /// The backfill under way ends.
    CancelBackfill,
}

impl ScheduleEdit {
    /// Whether it would change nothing. Then nothing is written: no new revision, and the next firing is undisturbed.
    pub fn is_in_force(&self, schedule: &Schedule) -> bool {
        match self {
            Self::Put { spec, paused } => {
                schedule.spec == *spec && paused.is_none_or(|paused| paused == schedule.paused)
            }
            _ => false,
        }
    }

    /// Whether firings of a backfill may have to be counted, which takes its time.
    pub const fn counts_firings(&self) -> bool {
        matches!(self, Self::Spec { .. } | Self::Put { .. } | Self::Backfill(_))
    }
}

/// Why a schedule was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditRefused {
    /// Somebody else was faster.
    #[error("the schedule was changed meanwhile")]
    SpecChanged,
    /// One at a time.
    #[error("a backfill of this schedule is under way")]
    BackfillRunning,
    /// There never was one.
    #[error("the schedule has no backfill")]
    NeverBackfilled,
    /// Nothing, or too much, to make up for.
    #[error(transparent)]
    NoBackfill(#[from] NoBackfill),
}

/// The schedule as it is to be. What was due up to `now` is dealt with: it begins anew, or goes on, from here.
/// `Ok(Err(_))`: as it is, this cannot be done.
pub fn edited(
    schedule: Schedule,
    edit: &ScheduleEdit,
    calendars: &Calendars,
    now: Timestamp,
) -> Result<Result<Schedule, EditRefused>, BadTimetable> {
    let mut changed = schedule;
    if !matches!(edit, ScheduleEdit::Backfill(_) | ScheduleEdit::CancelBackfill) {
        changed.updated_at = now;
    }
    match edit {
        ScheduleEdit::Spec { instead_of, .. } if changed.spec != *instead_of => {
            return Ok(Err(EditRefused::SpecChanged));
        }
        ScheduleEdit::Spec { spec, .. } => replace_spec(&mut changed, spec, calendars, now)?,
        ScheduleEdit::Put { spec, paused } => {
            if changed.spec != *spec {
                replace_spec(&mut changed, spec, calendars, now)?;
            }
            match paused {
                Some(true) if !changed.paused => changed.paused = true,
                Some(false) => resume(&mut changed, now)?,
                _ => {}
            }
        }
        ScheduleEdit::Pause { note } => {
            changed.paused = true;
            changed.pause_note.clone_from(note);
        }
        ScheduleEdit::Resume => resume(&mut changed, now)?,
        ScheduleEdit::Backfill(request) => match begun(&changed, *request, calendars, now)? {
            Ok(backfill) => changed.progress.backfill = Some(backfill),
            Err(refused) => return Ok(Err(refused)),
        },
        ScheduleEdit::CancelBackfill => match changed.progress.backfill {
            Some(backfill) => changed.progress.backfill = Some(backfill.cancelled(now)),
            None => return Ok(Err(EditRefused::NeverBackfilled)),
        },
    }
    let progress = &mut changed.progress;
    progress.wake_at = progress.wake_at.into_iter().chain(progress.backfill_wakes_at(changed.paused)).min();
    Ok(Ok(changed))
}

fn replace_spec(
    schedule: &mut Schedule,
    spec: &Arc<ScheduleSpec>,
    calendars: &Calendars,
    now: Timestamp,
) -> Result<(), BadTimetable> {
    schedule.spec = spec.clone();
    let timetable = spec.timetable()?;
    let counted_anew =
        |backfill| counted_anew(backfill, spec, &timetable, calendars).unwrap_or(backfill.cancelled(now));
    let backfill = schedule.progress.backfill.map(counted_anew);
    schedule.progress = ScheduleProgress { backfill, ..from_here(schedule, &timetable, now) };
    Ok(())
}

fn resume(schedule: &mut Schedule, now: Timestamp) -> Result<(), BadTimetable> {
    if !schedule.paused {
        return Ok(());
    }
    schedule.paused = false;
    schedule.pause_note = None;
    let ScheduleProgress { rolled_at, backfill, .. } = schedule.progress;
    let progress = from_here(schedule, &schedule.spec.timetable()?, now);
    schedule.progress = ScheduleProgress { rolled_at, backfill, ..progress };
    Ok(())
}

/// What is queued was due before, and stays so.
fn from_here(schedule: &Schedule, timetable: &Timetable, now: Timestamp) -> ScheduleProgress {
    let begun = begin(schedule.id, &schedule.spec, timetable, now.max(schedule.progress.cursor));
    let held_at = schedule.progress.held_at;
    ScheduleProgress {
        held_at,
        wake_at: held_at.map(|_| now).into_iter().chain(begun.wake_at).min(),
        ..begun
    }
}

/// Beyond the cursor the firings are the schedule's own business.
fn begun(
    schedule: &Schedule,
    request: BackfillRequest,
    calendars: &Calendars,
    now: Timestamp,
) -> Result<Result<Backfill, EditRefused>, BadTimetable> {
    if schedule.progress.backfill.is_some_and(|backfill| backfill.is_running()) {
        return Ok(Err(EditRefused::BackfillRunning));
    }
    let request = BackfillRequest { to: request.to.min(schedule.progress.cursor), ..request };
    let timetable = schedule.spec.timetable()?;
    let survey = backfill::survey(&schedule.spec, &timetable, calendars, (request.from, request.to));
    Ok(survey.map(|survey| Backfill::begin(request, survey, now)).map_err(EditRefused::from))
}

/// What is left of a backfill follows the new spec; `None` if that is too much.
fn counted_anew(
    backfill: Backfill,
    spec: &ScheduleSpec,
    timetable: &Timetable,
    calendars: &Calendars,
) -> Option<Backfill> {
    if !backfill.is_running() {
        return Some(backfill);
    }
    let rest = (backfill.cursor + Duration::from_millis(1), backfill.to);
    let left = match backfill::survey(spec, timetable, calendars, rest) {
        Ok(survey) => survey.count,
        Err(NoBackfill::NoFirings) => 0,
        Err(NoBackfill::TooManyFirings) => return None,
    };
    Some(Backfill { total: backfill.made + backfill.passed_over + left, ..backfill })
}
