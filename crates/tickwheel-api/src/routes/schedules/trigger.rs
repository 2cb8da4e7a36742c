//! Triggering a schedule by hand.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::HeaderMap;
use tickwheel_core::ports::{Creation, NoSuchSchedule};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Code, Job, TriggerSchedule};

use super::{find, no_such_schedule};
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Name, OptionalJson};
use crate::routes::jobs::{agreed_key, conflict, created_answer};
use crate::state::ApiState;

/// Trigger a schedule now, even a paused one
///
/// The body is optional. If the same idempotency key was used for the same schedule and payload, the answer is 200 and
/// the first job. Otherwise a used key is answered with 409.
#[utoipa::path(post, operation_id = "trigger_schedule", path = "/api/v1/schedules/{schedule}/trigger", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule"),
        ("Idempotency-Key" = Option<String>, Header, description = "Same as the field `idempotency_key`")),
    request_body = TriggerSchedule,
    responses(
        (status = 201, description = "The job is stored", body = Job),
        (status = 200, description = "The job was stored before, with the same idempotency key", body = Job)))]
pub async fn trigger(
    State(state): State<ApiState>,
    Name(key): Name,
    headers: HeaderMap,
    OptionalJson(mut request): OptionalJson<TriggerSchedule>,
) -> ApiResult<Response> {
    request.idempotency_key = agreed_key(&headers, request.idempotency_key.take())?;
    request.validate(&state.limits)?;
    let schedule = find(&state, &key).await?;
    let trigger = convert::trigger(schedule.id, &request, state.now())
        .map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    match state.schedules.trigger(schedule.id, trigger).await? {
        Creation::Created(job) => created_answer(&job),
        Creation::Existing(job) => Ok(Json(convert::job(&job)?).into_response()),
        Creation::Conflict(first) => Err(conflict(first).into()),
        Creation::Refused(NoSuchSchedule) => Err(no_such_schedule()),
    }
}
