//! Schedules and their firings into what a client reads.

use tickwheel_core::Timestamp;
use tickwheel_core::ports::StoreError;
use tickwheel_core::schedule::plan::{Calendars, excludes_every_day};
use tickwheel_core::schedule::{Fire, Rule, Schedule, ScheduleSpec, Timetable, Upcoming, Zone, explain};
use tickwheel_protocol::{self as wire, Missed, NextFire, Span};

use super::answer::{job_template, time};
use super::{backfill, local_time, words};
use crate::error::ApiResult;

/// So much is done to find the next firing of a schedule, enough for any that people wrote. Others have none to be
/// shown.
const NEXT_STEPS_MAX: u64 = 50_000;

/// A schedule with the latest of its firings.
pub fn schedule(schedule: &Schedule, calendars: &Calendars, fires: &[Fire]) -> ApiResult<wire::Schedule> {
    let spec = &schedule.spec;
    let timetable = timetable(spec)?;
    let (cron, every, anchor) = match &spec.rule {
        Rule::Cron(text) => (Some(text.clone()), None, None),
        Rule::Every { every_ms, anchor } => (None, Some(Span::from_millis(*every_ms)), Some(time(*anchor))),
    };
    let missed = spec.missed;
    Ok(wire::Schedule {
        id: schedule.id.as_uuid(),
        name: schedule.name.to_string(),
        cron,
        every,
        anchor,
        timezone: spec.timezone.clone(),
        description: explain(&timetable.recurrence, spec.day_logic),
        next_fire_at: next_fire_at(schedule, &timetable, calendars).map(time),
        never: never(schedule) || excludes_every_day(spec, calendars),
        paused: schedule.paused,
        pause_note: schedule.pause_note.clone(),
        job: job_template(&spec.job)?,
        missed: Missed {
            policy: Some(words::wire_missed_policy(missed.policy)),
            window: Some(Span::from_millis(missed.window_ms)),
            max_backfill: Some(missed.max_backfill),
        },
        overlap: words::wire_overlap(spec.overlap),
        dst_gap: words::wire_gap(spec.dst_gap),
        dst_fold: words::wire_fold(spec.dst_fold),
        day_logic: words::wire_day_logic(spec.day_logic),
        start_at: spec.start_at.map(time),
        end_at: spec.end_at.map(time),
        jitter: Span::from_millis(spec.jitter_ms),
        exclude: spec.exclude.iter().map(ToString::to_string).collect(),
        on_excluded: words::wire_on_excluded(spec.on_excluded),
        tenant: schedule.tenant.to_string(),
        created_at: time(schedule.created_at),
        updated_at: time(schedule.updated_at),
        queued_since: schedule.progress.held_at.map(time),
        last_fires: fires.iter().map(fire).collect(),
        backfill: backfill(schedule, &timetable, calendars),
    })
}

/// When a stored schedule fires. What is stored was a timetable once.
pub fn timetable(spec: &ScheduleSpec) -> Result<Timetable, StoreError> {
    spec.timetable().map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn next_fire_at(schedule: &Schedule, timetable: &Timetable, calendars: &Calendars) -> Option<Timestamp> {
    let progress = &schedule.progress;
    if schedule.paused {
        return None;
    }
    if schedule.spec.exclude.is_empty() {
        return progress.next_at;
    }
    let ahead = Upcoming::of(&schedule.spec, timetable, calendars, progress.cursor, progress.rolled_at);
    ahead.steps_max(NEXT_STEPS_MAX).next()
}

fn never(schedule: &Schedule) -> bool {
    let progress = &schedule.progress;
    progress.next_at.is_none() && progress.rolled_at.is_none() && progress.held_at.is_none()
}

/// What became of a firing.
pub fn fire(fire: &Fire) -> wire::Fire {
    wire::Fire {
        nominal_time: time(fire.nominal_at),
        last_nominal_time: time(fire.last_at),
        count: fire.count,
        outcome: words::wire_fire_outcome(fire.outcome),
        reason: fire.reason.as_str().into(),
        job_id: fire.job_id.map(|id| id.as_uuid()),
        recorded_at: time(fire.recorded_at),
    }
}

/// A firing that is to come.
pub fn next_fire(zone: Zone, at: Timestamp) -> NextFire {
    NextFire { nominal_time: time(at), local_time: local_time(zone, at) }
}
