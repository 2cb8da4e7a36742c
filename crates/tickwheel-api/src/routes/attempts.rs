//! Reports from targets that answer later. The token is the only permission they need, and it is valid for one attempt.

use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use tickwheel_core::ports::{Heartbeat, ReportOutcome};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Code, CompleteAttempt, FailAttempt, HeartbeatAnswer, Time};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Nothing, OptionalJson, Token};
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(complete)).routes(routes!(fail)).routes(routes!(heartbeat))
}

/// Report that an attempt succeeded
///
/// The body is optional.
#[utoipa::path(post, operation_id = "complete_attempt", path = "/api/v1/attempts/{token}/complete", tag = "attempts",
    params(("token" = String, Path)), request_body = CompleteAttempt,
    responses((status = 204, description = "The report is recorded")))]
async fn complete(
    State(state): State<ApiState>,
    Token(attempt): Token,
    OptionalJson(report): OptionalJson<CompleteAttempt>,
) -> ApiResult<StatusCode> {
    report.validate(&state.limits)?;
    let result = report.result.as_deref().map(convert::payload);
    record(&state, attempt, Outcome::Completed { result }).await
}

/// Report that an attempt failed
///
/// The body is optional.
#[utoipa::path(post, operation_id = "fail_attempt", path = "/api/v1/attempts/{token}/fail", tag = "attempts",
    params(("token" = String, Path)), request_body = FailAttempt,
    responses((status = 204, description = "The report is recorded")))]
async fn fail(
    State(state): State<ApiState>,
    Token(attempt): Token,
    OptionalJson(report): OptionalJson<FailAttempt>,
) -> ApiResult<StatusCode> {
    report.validate(&state.limits)?;
    record(&state, attempt, convert::failed(report, state.limits.error_bytes_max)).await
}

/// Report that an attempt is still running
#[utoipa::path(post, operation_id = "heartbeat_attempt", path = "/api/v1/attempts/{token}/heartbeat", tag = "attempts",
    params(("token" = String, Path)),
    responses((status = 200, description = "The attempt is still current", body = HeartbeatAnswer)))]
async fn heartbeat(
    State(state): State<ApiState>,
    Token(attempt): Token,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<HeartbeatAnswer>> {
    match state.scheduler.heartbeat(attempt).await? {
        Heartbeat::Current { cancel_requested, deadline } => Ok(Json(HeartbeatAnswer {
            cancel: cancel_requested,
            deadline: Time::from_millis(deadline.as_millis()),
        })),
        Heartbeat::Stale => Err(stale()),
        Heartbeat::NotFound => Err(ApiError::not_found("job")),
    }
}

async fn record(state: &ApiState, attempt: AttemptRef, outcome: Outcome) -> ApiResult<StatusCode> {
    match state.scheduler.report(attempt, outcome).await? {
        ReportOutcome::Recorded => Ok(StatusCode::NO_CONTENT),
        ReportOutcome::Stale => Err(stale()),
        ReportOutcome::NotFound => Err(ApiError::not_found("job")),
    }
}

fn stale() -> ApiError {
    ApiError::new(Code::StaleToken, "the attempt is no longer the current one; nothing was changed")
}
