//! Creating a schedule. When the call answers, the schedule is on disk and its next firing is certain.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::LOCATION;
use tickwheel_core::ports::ScheduleCreated;
use tickwheel_core::schedule::Schedule as CoreSchedule;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Code, Schedule, SubmitSchedule};

use super::{answer, require_calendars};
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::StrictJson;
use crate::state::ApiState;

/// Create a schedule
///
/// A schedule that never fires is accepted: `never` is `true`.
#[utoipa::path(post, operation_id = "create_schedule", path = "/api/v1/schedules", tag = "schedules", request_body = SubmitSchedule,
    responses((status = 201, description = "The schedule is stored", body = Schedule)))]
pub async fn create(
    State(state): State<ApiState>,
    StrictJson(request): StrictJson<SubmitSchedule>,
) -> ApiResult<Response> {
    let schedule = requested_schedule(&state, request).await?;
    match state.schedules.create(schedule.clone()).await? {
        ScheduleCreated::Created => created(&state, schedule).await,
        ScheduleCreated::NameTaken(other) => {
            let detail = format!("there is a schedule {:?} already: {other}", schedule.name);
            Err(ApiError::new(Code::NameTaken, detail))
        }
    }
}

/// The answer to whoever created a schedule.
pub(super) async fn created(state: &ApiState, schedule: CoreSchedule) -> ApiResult<Response> {
    let location = format!("/api/v1/schedules/{}", schedule.id);
    let created = answer(state, schedule).await?;
    Ok((StatusCode::CREATED, [(LOCATION, location)], created).into_response())
}

/// The requested schedule, if it is valid. Nothing is stored yet.
pub(super) async fn requested_schedule(state: &ApiState, request: SubmitSchedule) -> ApiResult<CoreSchedule> {
    request.validate(&state.limits)?;
    state.permissions.check_job(&request.job).map_err(|problem| problem.below("/job"))?;
    let schedule = convert::new_schedule(request, state.now())?;
    require_calendars(state, &schedule.spec).await?;
    Ok(schedule)
}
