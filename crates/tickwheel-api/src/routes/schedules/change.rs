//! Commands for a schedule. When the call answers, the change is in force.

use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use tickwheel_core::ports::ScheduleEdited;
use tickwheel_core::schedule::edit::{EditRefused, ScheduleEdit};
use tickwheel_core::schedule::{Schedule as CoreSchedule, ScheduleSpec};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{PatchSchedule, PauseSchedule, Schedule};

use super::{answer, done, edit, find, no_such_schedule, require_calendars};
use crate::convert;
use crate::error::ApiResult;
use crate::extract::{Name, Nothing, OptionalJson, StrictJson};
use crate::state::ApiState;

/// How often a change is tried again that meets other changes, before the client is told to come back.
const TRIES_MAX: usize = 10;

/// Change a schedule
///
/// The change applies from the next firing on. Fields that you leave out keep their value, even if somebody else
/// changes them at the same time. `job` is replaced as a whole.
#[utoipa::path(patch, operation_id = "patch_schedule", path = "/api/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")), request_body = PatchSchedule,
    responses((status = 200, description = "The changed schedule", body = Schedule)))]
pub async fn patch(
    State(state): State<ApiState>,
    Name(key): Name,
    StrictJson(patch): StrictJson<PatchSchedule>,
) -> ApiResult<Json<Schedule>> {
    patch.validate(&state.limits)?;
    if let Some(job) = &patch.job {
        state.permissions.check_job(job).map_err(|problem| problem.below("/job"))?;
    }
    let mut schedule = find(&state, &key).await?;
    // What is wrong with it shows before any of it is in force.
    wanted(&state, &schedule, &patch).await?;
    // Paused first and resumed last: nothing fires between the two that either side would not want.
    if patch.paused == Some(true) && !schedule.paused {
        schedule = edit(&state, schedule.id, ScheduleEdit::Pause { note: None }).await?;
    }
    schedule = change_spec(&state, schedule, &patch).await?;
    if patch.paused == Some(false) && schedule.paused {
        schedule = edit(&state, schedule.id, ScheduleEdit::Resume).await?;
    }
    answer(&state, schedule).await
}

/// The schedule's spec with the change.
async fn wanted(state: &ApiState, schedule: &CoreSchedule, patch: &PatchSchedule) -> ApiResult<ScheduleSpec> {
    let spec = convert::patched(&schedule.spec, patch.clone())?;
    require_calendars(state, &spec).await?;
    Ok(spec)
}

/// Changes the spec. If somebody else changed it meanwhile, it is read again, so that both changes take effect.
async fn change_spec(
    state: &ApiState,
    mut schedule: CoreSchedule,
    patch: &PatchSchedule,
) -> ApiResult<CoreSchedule> {
    for _ in 0..TRIES_MAX {
        let spec = wanted(state, &schedule, patch).await?;
        if spec == *schedule.spec {
            return Ok(schedule);
        }
        let edit = ScheduleEdit::Spec { spec: spec.into(), instead_of: schedule.spec.clone() };
        match state.schedules.edit(schedule.id, edit).await? {
            ScheduleEdited::Refused(EditRefused::SpecChanged) => {
                let read_again = state.store.get_schedules(vec![schedule.id]).await?.pop();
                schedule = read_again.ok_or_else(no_such_schedule)?;
            }
            edited => return done(edited),
        }
    }
    Err(EditRefused::SpecChanged.into())
}

/// Pause a schedule
///
/// The body is optional. The schedule does not fire until it is resumed. Firings that come due meanwhile are recorded
/// as skipped and not made up for.
#[utoipa::path(post, operation_id = "pause_schedule", path = "/api/v1/schedules/{schedule}/pause", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")), request_body = PauseSchedule,
    responses((status = 200, description = "The schedule is paused", body = Schedule)))]
pub async fn pause(
    State(state): State<ApiState>,
    Name(key): Name,
    OptionalJson(pause): OptionalJson<PauseSchedule>,
) -> ApiResult<Json<Schedule>> {
    pause.validate(&state.limits)?;
    let schedule = find(&state, &key).await?;
    let paused = edit(&state, schedule.id, ScheduleEdit::Pause { note: pause.note }).await?;
    answer(&state, paused).await
}

/// Resume a paused schedule with its next firing
#[utoipa::path(post, operation_id = "resume_schedule", path = "/api/v1/schedules/{schedule}/resume", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")),
    responses((status = 200, description = "The schedule is resumed", body = Schedule)))]
pub async fn resume(
    State(state): State<ApiState>,
    Name(key): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<Schedule>> {
    let schedule = find(&state, &key).await?;
    let resumed = edit(&state, schedule.id, ScheduleEdit::Resume).await?;
    answer(&state, resumed).await
}

/// Delete a schedule and its ledger
///
/// The schedule does not fire after the answer. The jobs it made stay.
#[utoipa::path(delete, operation_id = "delete_schedule", path = "/api/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")),
    responses((status = 204, description = "The schedule is deleted")))]
pub async fn delete(
    State(state): State<ApiState>,
    Name(key): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<StatusCode> {
    let schedule = find(&state, &key).await?;
    if state.schedules.delete(schedule.id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_schedule())
    }
}
