//! Putting a schedule in place: created if there is none of its name, else changed to exactly what is said.
//!
//! Each try ends with one conditional write: a schedule is created only while its name is free, and changed only in the
//! revision it was read in. Whoever creates, changes or deletes the schedule at the same time goes before or after it.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use tickwheel_core::ports::{ScheduleCreated, ScheduleEdited};
use tickwheel_core::schedule::Schedule as CoreSchedule;
use tickwheel_core::schedule::edit::{EditRefused, ScheduleEdit};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{FieldError, Problem, PutSchedule, Schedule};

use super::create::{created, requested_schedule};
use super::{answer, done};
use crate::error::ApiResult;
use crate::extract::{Name, StrictJson};
use crate::state::ApiState;

/// How often it is tried again while others create and delete schedules of the name, before the client is told to come
/// back.
const TRIES_MAX: usize = 10;

/// Create a schedule, or change it to exactly this
///
/// Fields that you leave out have their defaults, also in a schedule that exists. The exception is `paused`: a schedule
/// that exists stays paused or not, as it is. A change applies from the next firing on. If the schedule is already as
/// the request says, nothing changes.
#[utoipa::path(put, operation_id = "put_schedule", path = "/api/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "The name of the schedule")), request_body = PutSchedule,
    responses((status = 200, description = "The schedule existed, and is as requested", body = Schedule),
        (status = 201, description = "The schedule is stored", body = Schedule)))]
pub async fn put(
    State(state): State<ApiState>,
    Name(name): Name,
    StrictJson(request): StrictJson<PutSchedule>,
) -> ApiResult<Response> {
    if request.name.as_ref().is_some_and(|said| *said != name) {
        let detail = "must be the name in the path, or left out".into();
        let field = FieldError { pointer: "/name".into(), code: FieldCode::Conflict, detail };
        return Err(Problem::invalid(vec![field]).into());
    }
    let paused = request.paused;
    let schedule = requested_schedule(&state, request.named(name)).await?;
    match put_schedule(&state, &Declared { schedule, paused }).await? {
        PutOutcome::Created(schedule) => created(&state, schedule).await,
        PutOutcome::Existed(schedule) => Ok(answer(&state, schedule).await?.into_response()),
    }
}

/// A schedule that somebody declared.
pub(in crate::routes) struct Declared {
    /// As it is if it is new.
    pub schedule: CoreSchedule,
    /// Whether one that exists is paused. `None`: as it is.
    pub paused: Option<bool>,
}

/// What became of a declared schedule.
pub(in crate::routes) enum PutOutcome {
    /// There was none of its name.
    Created(CoreSchedule),
    /// There was one, and it is as declared.
    Existed(CoreSchedule),
}

/// Makes the schedule of that name what was declared.
pub(in crate::routes) async fn put_schedule(state: &ApiState, declared: &Declared) -> ApiResult<PutOutcome> {
    let Declared { schedule, paused } = declared;
    let edit = ScheduleEdit::Put { spec: schedule.spec.clone(), paused: *paused };
    for _ in 0..TRIES_MAX {
        match state.store.find_schedule(&schedule.tenant, &schedule.name).await? {
            Some(existing) if edit.is_in_force(&existing) => return Ok(PutOutcome::Existed(existing)),
            Some(existing) => match state.schedules.edit(existing.id, edit.clone()).await? {
                ScheduleEdited::NotFound => {}
                edited => return done(edited).map(PutOutcome::Existed),
            },
            None => match state.schedules.create(schedule.clone()).await? {
                ScheduleCreated::NameTaken(_) => {}
                ScheduleCreated::Created => return Ok(PutOutcome::Created(schedule.clone())),
            },
        }
    }
    Err(EditRefused::SpecChanged.into())
}
