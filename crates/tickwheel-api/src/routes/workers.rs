//! Workers: how a process elsewhere gets jobs and reports on them, and who is there.

use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use serde::Deserialize;
use tickwheel_core::log::{LINE_BYTES_MAX, LOG_BYTES_MAX, LogAppend};
use tickwheel_core::ports::{Leaving, WorkerBeat, WorkerReport};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{LEASE_MAX, LEASE_MIN};
use tickwheel_core::{SessionId, State as JobState};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::validate::worker::REPORTS_MAX;
use tickwheel_protocol::worker::{
    Accepted, AcceptedReport, PROTOCOL, ProtocolRange, RejectedReport, WorkerState,
};
use tickwheel_protocol::{
    AppendLogs, AttemptLines, AttemptReport, Code, List, PollWorker, PolledJobs, Problem, RegisterWorker,
    RegisteredWorker, ReportAttempts, ReportResult, ReportResults, ServerInfo, Span, Worker, WorkerDetails,
    WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerLimits, strict_json,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Nothing, OptionalJson, RawJson, StrictJson, WorkerId};
use crate::params::{PageParams, Params, page_limit, parse_worker_cursor, worker_cursor};
use crate::state::ApiState;

/// Jobs in the answer to a poll.
const POLL_JOBS_MAX: usize = 1_000;
/// Attempts that are shown of a worker.
const SHOWN_MAX: usize = 1_000;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(server))
        .routes(routes!(register))
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(poll))
        .routes(routes!(heartbeat))
        .routes(routes!(report))
        .routes(routes!(append_logs))
        .routes(routes!(drain))
        .routes(routes!(resume))
        .routes(routes!(leave))
}

/// Say what this server is
///
/// A library asks this before it uses anything else.
#[utoipa::path(get, operation_id = "get_server", path = "/api/v1/server", tag = "workers",
    responses((status = 200, description = "The server", body = ServerInfo)))]
async fn server() -> Json<ServerInfo> {
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION").into(),
        worker_protocol: ProtocolRange { min: PROTOCOL, max: PROTOCOL },
        features: FEATURES.iter().map(|feature| (*feature).into()).collect(),
    })
}

/// What this server can do beyond the first version of the worker protocol.
const FEATURES: [&str; 5] = ["resync", "logs", "progress", "once", "executors"];

/// Register a worker: open a session
///
/// Registering again with the same `instance` is the same session.
#[utoipa::path(post, operation_id = "register_worker", path = "/api/v1/workers", tag = "workers",
    request_body = RegisterWorker,
    responses((status = 201, description = "The session is open", body = RegisteredWorker)))]
async fn register(
    State(state): State<ApiState>,
    StrictJson(request): StrictJson<RegisterWorker>,
) -> ApiResult<(StatusCode, Json<RegisteredWorker>)> {
    request.validate(&state.limits)?;
    if let Some(protocol) = request.protocol.filter(|protocol| *protocol != PROTOCOL) {
        let detail = format!("this server speaks version {PROTOCOL} of the worker protocol, not {protocol}");
        return Err(ApiError::new(Code::ProtocolUnsupported, detail));
    }
    let lease = request.lease.map_or(state.worker_lease, Span::as_duration);
    if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
        let (min, max) = (convert::span(LEASE_MIN), convert::span(LEASE_MAX));
        return Err(ApiError::new(Code::LeaseOutOfRange, format!("a lease is from {min} to {max} long")));
    }
    let session = state.workers.register(convert::new_worker(request, lease, state.now())).await?;
    let answer = RegisteredWorker {
        worker_id: session.id.to_string(),
        lease: convert::span(session.profile.lease()),
        heartbeat_interval: convert::span(session.profile.heartbeat_interval()),
        poll_wait: convert::span(convert::POLL_WAIT),
        limits: limits(&state),
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

fn limits(state: &ApiState) -> WorkerLimits {
    WorkerLimits {
        poll_jobs: POLL_JOBS_MAX as u64,
        reports: REPORTS_MAX as u64,
        report_bytes: state.limits.batch_bytes_max as u64,
        result_bytes: state.limits.payload_bytes_max as u64,
        log_line_bytes: LINE_BYTES_MAX as u64,
        log_bytes: LOG_BYTES_MAX as u64,
    }
}

/// List workers by id
#[utoipa::path(get, operation_id = "list_workers", path = "/api/v1/workers", tag = "workers", params(PageParams),
    responses((status = 200, description = "The workers", body = List<Worker>)))]
async fn list(
    State(state): State<ApiState>,
    Params(params): Params<PageParams>,
) -> ApiResult<Json<List<Worker>>> {
    let limit = page_limit(params.limit)?;
    let after = params.cursor.as_deref().map(parse_worker_cursor).transpose()?;
    let mut sessions = state.store.list_workers(after, limit + 1).await?;
    let is_more = sessions.len() > limit;
    sessions.truncate(limit);
    let counts = state.store.count_held(sessions.iter().map(|session| session.id).collect()).await?;
    let next_cursor = sessions.last().filter(|_| is_more).map(|session| worker_cursor(session.id));
    let shown = sessions.iter().zip(counts);
    let items =
        shown.map(|(session, running)| convert::worker(session, state.workers.activity(session.id), running));
    Ok(Json(List { items: items.collect(), next_cursor }))
}

/// Get a worker and what it runs
#[utoipa::path(get, operation_id = "get_worker", path = "/api/v1/workers/{id}", tag = "workers",
    params(("id" = String, Path)),
    responses((status = 200, description = "The worker", body = WorkerDetails)))]
async fn get(State(state): State<ApiState>, WorkerId(id): WorkerId) -> ApiResult<Json<WorkerDetails>> {
    let session = state.store.get_worker(id).await?.ok_or_else(unknown_worker)?;
    let held = state.store.held_by(id, SHOWN_MAX).await?;
    let running = match held.len() {
        SHOWN_MAX => state.store.count_held(vec![id]).await?.first().copied().unwrap_or(0),
        all => all as u64,
    };
    let worker = convert::worker(&session, state.workers.activity(id), running);
    Ok(Json(WorkerDetails { worker, attempts: held.iter().map(convert::held).collect() }))
}

/// Poll for jobs
///
/// Answers as soon as there is a job, or news about those that the worker has; else empty after `wait`. The jobs of an
/// answer are the worker's own already.
#[utoipa::path(post, operation_id = "poll_worker", path = "/api/v1/workers/{id}/poll", tag = "workers",
    params(("id" = String, Path)), request_body = PollWorker,
    responses((status = 200, description = "The jobs", body = PolledJobs)))]
async fn poll(
    State(state): State<ApiState>,
    WorkerId(id): WorkerId,
    OptionalJson(request): OptionalJson<PollWorker>,
) -> ApiResult<Json<PolledJobs>> {
    request.validate(&state.limits)?;
    if !(state.ready)() {
        return Err(ApiError::new(Code::ShuttingDown, "the server is shutting down; nothing was changed"));
    }
    let seq = request.seq;
    let mut poll = convert::poll(request, POLL_JOBS_MAX);
    poll.wait = poll.wait.min(state.limits.wait_max());
    let answer = state.workers.poll(id, poll).await?;
    let answer = answer.ok_or_else(unknown_worker)?;
    let now = state.now();
    let jobs = answer.jobs.into_iter().map(|context| convert::assignment(context, now));
    Ok(Json(PolledJobs {
        jobs: jobs.collect::<ApiResult<_>>()?,
        seq,
        cancel: tokens(&state, &answer.cancel),
        lost: tokens(&state, &answer.lost),
        drain: answer.drain,
    }))
}

/// Send a heartbeat: renew the lease of all that the worker has
#[utoipa::path(post, operation_id = "heartbeat_worker", path = "/api/v1/workers/{id}/heartbeat", tag = "workers",
    params(("id" = String, Path)), request_body = WorkerHeartbeat,
    responses((status = 200, description = "The lease is renewed", body = WorkerHeartbeatAnswer)))]
async fn heartbeat(
    State(state): State<ApiState>,
    WorkerId(id): WorkerId,
    OptionalJson(request): OptionalJson<WorkerHeartbeat>,
) -> ApiResult<Json<WorkerHeartbeatAnswer>> {
    request.validate(&state.limits)?;
    let attempts = request.attempts.unwrap_or_default();
    let (lists_all, all) = (request.tokens.is_some(), request.tokens.unwrap_or_default());
    // A token that was never made here is nobody's attempt.
    let foreign = attempts.iter().map(|attempt| &attempt.token).chain(&all);
    let mut lost: Vec<String> =
        foreign.filter(|token| state.tokens.verify(token).is_none()).cloned().collect();
    let verified = |token: &String| state.tokens.verify(token);
    let beat = WorkerBeat {
        mentioned: attempts.iter().filter_map(|attempt| verified(&attempt.token)).collect(),
        held: request.held,
        all: lists_all.then(|| all.iter().filter_map(verified).collect()),
        draining: request.state == Some(WorkerState::Draining),
        stuck: request.stuck.unwrap_or(0),
    };
    let answer = state.workers.beat(id, beat).await?.ok_or_else(unknown_worker)?;
    let now = state.now();
    let notes = attempts.into_iter().filter_map(|note| {
        let attempt = verified(&note.token).filter(|attempt| !answer.lost.contains(attempt))?;
        convert::progress(attempt, note.progress, note.message, now)
    });
    state.notes.note_progress(notes.collect());
    lost.extend(tokens(&state, &answer.lost));
    Ok(Json(WorkerHeartbeatAnswer {
        cancel: tokens(&state, &answer.cancel),
        lost,
        lease: convert::span(answer.lease),
        drain: answer.drain,
        resync: answer.resync,
    }))
}

/// Report how attempts ended
///
/// Each report is answered by itself. The same outcome of the same attempt is accepted again.
#[utoipa::path(post, operation_id = "report_attempts", path = "/api/v1/workers/{id}/report", tag = "workers",
    params(("id" = String, Path)), request_body = ReportAttempts,
    responses((status = 200, description = "One answer per report, in order", body = ReportResults)))]
async fn report(
    State(state): State<ApiState>,
    // The token is the right: a report works under any session, also one that has ended.
    WorkerId(_): WorkerId,
    RawJson(body): RawJson<true>,
) -> ApiResult<Json<ReportResults>> {
    let request: ReportAttempts = strict_json::read(&body, state.limits.json_depth_max)?;
    request.validate(&state.limits)?;
    let mut results: Vec<Option<ReportResult>> = Vec::with_capacity(request.reports.len());
    let mut sound: Vec<(AttemptRef, Outcome)> = Vec::new();
    let mut logs: Vec<LogAppend> = Vec::new();
    for report in request.reports {
        match readable(&state, report) {
            Ok((attempt, outcome, lines)) => {
                sound.push((attempt, outcome));
                logs.extend(lines);
                results.push(None);
            }
            Err(problem) => results.push(Some(rejected(problem))),
        }
    }
    // Before the ends: whoever sees that a job has ended finds its whole log.
    state.notes.append_last_lines(logs).await;
    let mut recorded = state.workers.report(sound).await?.into_iter();
    let results = results
        .into_iter()
        .map(|result| result.unwrap_or_else(|| recorded.next().map_or_else(|| rejected(stale()), reported)));
    Ok(Json(ReportResults { results: results.collect() }))
}

/// The attempt that a report is about, how it ended, and its last lines.
fn readable(
    state: &ApiState,
    mut report: AttemptReport,
) -> Result<(AttemptRef, Outcome, Option<LogAppend>), Problem> {
    report.validate(&state.limits)?;
    let attempt = state.tokens.verify(&report.token).ok_or_else(stale)?;
    let logs = report.logs.take();
    let lines = logs.map(|logs| convert::log_append(attempt, logs.first, logs.lines, state.now()));
    Ok((attempt, convert::outcome(report, state.limits.error_bytes_max), lines))
}

/// Add lines to the logs of attempts
///
/// Each log is answered by itself. Lines are numbered by whoever sends them: a line that was sent before is not added
/// again. Also accepted when an attempt is over.
#[utoipa::path(post, operation_id = "append_worker_logs", path = "/api/v1/workers/{id}/logs", tag = "workers",
    params(("id" = String, Path)), request_body = AppendLogs,
    responses((status = 200, description = "One answer per log, in order", body = ReportResults)))]
async fn append_logs(
    State(state): State<ApiState>,
    // The token is the right, as with reports.
    WorkerId(_): WorkerId,
    RawJson(body): RawJson<true>,
) -> ApiResult<Json<ReportResults>> {
    let request: AppendLogs = strict_json::read(&body, state.limits.json_depth_max)?;
    request.validate(&state.limits)?;
    let (mut appends, mut read) = (Vec::new(), Vec::with_capacity(request.logs.len()));
    for lines in request.logs {
        read.push(readable_lines(&state, lines).map(|append| appends.push(append)));
    }
    let mut stored = state.notes.append_logs(appends).await?.into_iter();
    let accepted = ReportResult::Accepted(AcceptedReport { status: Accepted::Accepted, job_status: None });
    let result = |read: Result<(), Problem>| match read {
        Ok(()) if stored.next() == Some(true) => accepted.clone(),
        Ok(()) => rejected(Problem::new(Code::NotFound, "there is no such job")),
        Err(problem) => rejected(problem),
    };
    Ok(Json(ReportResults { results: read.into_iter().map(result).collect() }))
}

fn readable_lines(state: &ApiState, lines: AttemptLines) -> Result<LogAppend, Problem> {
    lines.validate(&state.limits)?;
    let attempt = state.tokens.verify(&lines.token).ok_or_else(stale)?;
    Ok(convert::log_append(attempt, lines.first, lines.lines, state.now()))
}

fn reported(report: WorkerReport) -> ReportResult {
    match report {
        WorkerReport::Recorded(state) => accepted(state),
        WorkerReport::Stale | WorkerReport::NotFound => rejected(stale()),
        WorkerReport::NotCancelled => rejected(Problem::new(
            Code::IllegalState,
            "nobody asked to cancel the attempt; report it as completed, failed, snoozed or released",
        )),
    }
}

fn accepted(state: JobState) -> ReportResult {
    ReportResult::Accepted(AcceptedReport {
        status: Accepted::Accepted,
        job_status: Some(convert::status(state)),
    })
}

const fn rejected(error: Problem) -> ReportResult {
    ReportResult::Rejected(RejectedReport { error })
}

fn stale() -> Problem {
    Problem::new(Code::StaleToken, "the attempt is no longer the current one; nothing was changed")
}

/// Ask a worker to finish what it has and take nothing new
#[utoipa::path(post, operation_id = "drain_worker", path = "/api/v1/workers/{id}/drain", tag = "workers",
    params(("id" = String, Path)),
    responses((status = 200, description = "The worker is asked", body = WorkerDetails)))]
async fn drain(
    State(state): State<ApiState>,
    WorkerId(id): WorkerId,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<WorkerDetails>> {
    change_draining(state, id, true).await
}

/// Let a worker take jobs again
#[utoipa::path(post, operation_id = "resume_worker", path = "/api/v1/workers/{id}/resume", tag = "workers",
    params(("id" = String, Path)),
    responses((status = 200, description = "The worker takes jobs", body = WorkerDetails)))]
async fn resume(
    State(state): State<ApiState>,
    WorkerId(id): WorkerId,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<WorkerDetails>> {
    change_draining(state, id, false).await
}

async fn change_draining(state: ApiState, id: SessionId, draining: bool) -> ApiResult<Json<WorkerDetails>> {
    if !state.workers.drain(id, draining).await? {
        return Err(unknown_worker());
    }
    get(State(state), WorkerId(id)).await
}

/// Why a worker leaves.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaveReason {
    /// What it still has is given back and costs no retry. The default.
    #[default]
    Drained,
    /// It died: what it had is lost, and the poison rule counts that.
    Crashed,
}

/// The query of a call that ends a session.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LeaveParams {
    /// Why it leaves.
    #[param(inline)]
    reason: Option<LeaveReason>,
}

/// Leave: end a session
///
/// What the worker still has goes back at once.
#[utoipa::path(delete, operation_id = "leave_worker", path = "/api/v1/workers/{id}", tag = "workers",
    params(("id" = String, Path), LeaveParams),
    responses((status = 204, description = "The session has ended")))]
async fn leave(
    State(state): State<ApiState>,
    WorkerId(id): WorkerId,
    Params(params): Params<LeaveParams>,
) -> ApiResult<StatusCode> {
    let leaving = match params.reason.unwrap_or_default() {
        LeaveReason::Drained => Leaving::Drained,
        LeaveReason::Crashed => Leaving::Crashed,
    };
    if state.workers.leave(id, leaving).await? { Ok(StatusCode::NO_CONTENT) } else { Err(unknown_worker()) }
}

fn tokens(state: &ApiState, attempts: &[AttemptRef]) -> Vec<String> {
    attempts.iter().map(|attempt| state.tokens.sign(*attempt)).collect()
}

fn unknown_worker() -> ApiError {
    ApiError::new(Code::UnknownWorker, "there is no such session; register again")
}
