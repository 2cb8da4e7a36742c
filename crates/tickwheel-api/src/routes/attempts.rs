//! Reports from targets that answer later. The token is the only permission they need, and it is valid for one attempt.

use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use tickwheel_core::JsonText;
use tickwheel_core::once::{OnceCall, OnceOutcome, OnceReport, OnceReported, TTL_DEFAULT};
use tickwheel_core::ports::{Heartbeat, ReportOutcome};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::worker::ReportedLines;
use tickwheel_protocol::{
    AskOnce, Code, CompleteAttempt, FailAttempt, HeartbeatAnswer, HeartbeatAttempt, OnceAbandon, OnceAnswer,
    OnceDone, OnceScope, Span, Time,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{OptionalJson, StrictJson, Token, TokenAndKey};
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(complete))
        .routes(routes!(fail))
        .routes(routes!(heartbeat))
        .routes(routes!(append_logs))
        .routes(routes!(ask_once))
        .routes(routes!(done_once))
        .routes(routes!(abandon_once))
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
///
/// The body is optional: how far it has come.
#[utoipa::path(post, operation_id = "heartbeat_attempt", path = "/api/v1/attempts/{token}/heartbeat", tag = "attempts",
    params(("token" = String, Path)), request_body = HeartbeatAttempt,
    responses((status = 200, description = "The attempt is still current", body = HeartbeatAnswer)))]
async fn heartbeat(
    State(state): State<ApiState>,
    Token(attempt): Token,
    OptionalJson(request): OptionalJson<HeartbeatAttempt>,
) -> ApiResult<Json<HeartbeatAnswer>> {
    request.validate(&state.limits)?;
    match state.scheduler.heartbeat(attempt).await? {
        Heartbeat::Current { cancel_requested, deadline } => {
            let note = convert::progress(attempt, request.progress, request.message, state.now());
            state.notes.note_progress(note.into_iter().collect());
            Ok(Json(HeartbeatAnswer {
                cancel: cancel_requested,
                deadline: Time::from_millis(deadline.as_millis()),
            }))
        }
        Heartbeat::Stale => Err(stale()),
        Heartbeat::NotFound => Err(ApiError::not_found("job")),
    }
}

/// Add lines to the log of an attempt
///
/// Lines are numbered by whoever sends them: a line that was sent before is not added again. Also accepted when the
/// attempt is over.
#[utoipa::path(post, operation_id = "append_attempt_logs", path = "/api/v1/attempts/{token}/logs", tag = "attempts",
    params(("token" = String, Path)), request_body = ReportedLines,
    responses((status = 204, description = "The lines are stored")))]
async fn append_logs(
    State(state): State<ApiState>,
    Token(attempt): Token,
    StrictJson(request): StrictJson<ReportedLines>,
) -> ApiResult<StatusCode> {
    request.validate(&state.limits)?;
    let append = convert::log_append(attempt, request.first, request.lines, state.now());
    match state.notes.append_logs(vec![append]).await?.first() {
        Some(true) => Ok(StatusCode::NO_CONTENT),
        _ => Err(ApiError::not_found("job")),
    }
}

/// Ask whether this attempt is to carry out an effect
///
/// The first who asks for a key carries out the effect, then says `done` or `abandon`. Others get its result. The same
/// attempt that asks again gets the same answer again.
#[utoipa::path(post, operation_id = "ask_once", path = "/api/v1/attempts/{token}/once/{key}", tag = "attempts",
    params(("token" = String, Path), ("key" = String, Path)), request_body = AskOnce,
    responses((status = 200, description = "How the effect stands", body = OnceAnswer)))]
async fn ask_once(
    State(state): State<ApiState>,
    TokenAndKey(caller, key): TokenAndKey,
    OptionalJson(request): OptionalJson<AskOnce>,
) -> ApiResult<Json<OnceAnswer>> {
    request.validate(&state.limits)?;
    let call = OnceCall {
        caller,
        key,
        scope: request.scope.map(convert::once_scope).unwrap_or_default(),
        ttl: request.ttl.map_or(TTL_DEFAULT, Span::as_duration),
        now: state.now(),
    };
    let answer = state.notes.ask_once(call).await?;
    convert::once_answer(answer)?.map(Json).ok_or_else(stale)
}

/// Say that an effect was carried out, and what came of it
#[utoipa::path(post, operation_id = "done_once", path = "/api/v1/attempts/{token}/once/{key}/done", tag = "attempts",
    params(("token" = String, Path), ("key" = String, Path)), request_body = OnceDone,
    responses((status = 204, description = "It is recorded")))]
async fn done_once(
    State(state): State<ApiState>,
    TokenAndKey(caller, key): TokenAndKey,
    OptionalJson(request): OptionalJson<OnceDone>,
) -> ApiResult<StatusCode> {
    request.validate(&state.limits)?;
    let result = request.result.as_deref().map_or_else(JsonText::null, convert::payload);
    report_once(&state, caller, key, request.scope, OnceOutcome::Done(result)).await
}

/// Say that an effect was not carried out: the next who asks is first
///
/// If the effect was in doubt, it stays in doubt: nobody knows whether an earlier attempt carried it out.
#[utoipa::path(post, operation_id = "abandon_once", path = "/api/v1/attempts/{token}/once/{key}/abandon", tag = "attempts",
    params(("token" = String, Path), ("key" = String, Path)), request_body = OnceAbandon,
    responses((status = 204, description = "It is recorded")))]
async fn abandon_once(
    State(state): State<ApiState>,
    TokenAndKey(caller, key): TokenAndKey,
    OptionalJson(request): OptionalJson<OnceAbandon>,
) -> ApiResult<StatusCode> {
    report_once(&state, caller, key, request.scope, OnceOutcome::Abandoned).await
}

async fn report_once(
    state: &ApiState,
    caller: AttemptRef,
    key: String,
    scope: Option<OnceScope>,
    outcome: OnceOutcome,
) -> ApiResult<StatusCode> {
    let scope = scope.map(convert::once_scope);
    let report = OnceReport { caller, key, scope, outcome, now: state.now() };
    match state.notes.report_once(report).await? {
        OnceReported::Recorded => Ok(StatusCode::NO_CONTENT),
        OnceReported::Stale => Err(stale()),
        OnceReported::NotHeld => Err(ApiError::new(
            Code::IllegalState,
            "the attempt does not hold this key: it did not ask, or said otherwise before",
        )),
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
