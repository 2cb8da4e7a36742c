//! The schedule of a workflow: an ordinary schedule that follows the definition.

use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{ScheduleCreated, ScheduleEdited};
use tickwheel_core::schedule::Schedule;
use tickwheel_core::schedule::edit::{EditRefused, ScheduleEdit};
use tickwheel_protocol::WorkflowSchedule;
use tickwheel_protocol::workflow::SCHEDULE_PREFIX;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::routes::schedules::{done, edit, require_calendars};
use crate::state::ApiState;

/// How often a change is tried again while others keep changing the schedule, before the client is told to come back.
const TRIES_MAX: usize = 10;

/// The schedule that a definition asks for.
pub struct Wanted {
    schedule: Schedule,
    paused: Option<bool>,
}

/// The requested schedule, if it is valid. The definition itself is valid already. Nothing is stored yet.
pub async fn wanted(state: &ApiState, workflow: &str, request: WorkflowSchedule) -> ApiResult<Wanted> {
    let inside = |ApiError(problem)| ApiError(problem.below("/schedule"));
    let paused = request.paused;
    let schedule = convert::new_schedule(request.into_schedule(workflow), state.now())
        .map_err(|problem| inside(ApiError(problem)))?;
    require_calendars(state, &schedule.spec).await.map_err(inside)?;
    Ok(Wanted { schedule, paused })
}

/// Makes the workflow's schedule what the definition says. `None` means that it has none.
pub async fn put(state: &ApiState, workflow: &str, wanted: Option<Wanted>) -> ApiResult<()> {
    let name = format!("{SCHEDULE_PREFIX}{workflow}");
    for _ in 0..TRIES_MAX {
        let existing = state.store.find_schedule(DEFAULT_TENANT, &name).await?;
        let is_done = match (existing, &wanted) {
            (None, None) => true,
            (Some(old), None) => {
                state.schedules.delete(old.id).await?;
                true
            }
            (None, Some(wanted)) => {
                let created = state.schedules.create(wanted.schedule.clone()).await?;
                matches!(created, ScheduleCreated::Created)
            }
            (Some(old), Some(wanted)) => change(state, old, wanted).await?,
        };
        if is_done {
            return Ok(());
        }
    }
    Err(EditRefused::SpecChanged.into())
}

/// Changes an existing schedule. `false` means that somebody else changed it at the same time.
async fn change(state: &ApiState, mut schedule: Schedule, wanted: &Wanted) -> ApiResult<bool> {
    // Paused first and resumed last: nothing fires between the two that either side would not want.
    if wanted.paused == Some(true) && !schedule.paused {
        schedule = edit(state, schedule.id, ScheduleEdit::Pause { note: None }).await?;
    }
    if schedule.spec != wanted.schedule.spec {
        let (spec, instead_of) = (wanted.schedule.spec.clone(), schedule.spec.clone());
        schedule = match state.schedules.edit(schedule.id, ScheduleEdit::Spec { spec, instead_of }).await? {
            ScheduleEdited::Refused(EditRefused::SpecChanged) | ScheduleEdited::NotFound => {
                return Ok(false);
            }
            edited => done(edited)?,
        };
    }
    if wanted.paused == Some(false) && schedule.paused {
        edit(state, schedule.id, ScheduleEdit::Resume).await?;
    }
    Ok(true)
}
