//! The logs of a job: page by page, or followed while they grow.
//!
//! Whoever follows gets a line of JSON per line of the log, until the job has ended and its lines are all sent. New lines
//! that came through this server are sent at once; the store is asked now and then for those of others. An empty line
//! says that the connection is alive.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use hyper::header::CONTENT_TYPE;
use serde::Deserialize;
use tickwheel_core::JobId;
use tickwheel_core::log::{LogPage, LogPlace};
use tickwheel_core::ports::{LogFollower, LogQuery};
use tickwheel_protocol::{Code, List, LogLine};
use tokio::time::Instant;
use utoipa::IntoParams;

use super::read::find;
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Id, IdAndAttempt};
use crate::memory::Turn;
use crate::metrics::Present;
use crate::params::{PageParams, Params, log_cursor, page_limit, parse_log_cursor};
use crate::state::ApiState;
use crate::streamed::Streamed;

/// How often the store is asked for lines that came through another server.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
/// After so long without a line, an empty one is sent.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Lines that are sent together to whoever follows,
const PIECE_LINES_MAX: usize = 200;
/// and about how many bytes.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// List the log lines of an attempt
///
/// Also while the attempt is running. If there were more than are kept, the first line says how many are missing. Empty
/// for targets that write no log.
#[utoipa::path(get, operation_id = "list_attempt_logs", path = "/api/v1/jobs/{id}/attempts/{n}/logs", tag = "jobs",
    params(("id" = String, Path), ("n" = u32, Path), PageParams),
    responses((status = 200, description = "The log lines", body = List<LogLine>)))]
pub async fn of_attempt(
    State(state): State<ApiState>,
    IdAndAttempt(id, number): IdAndAttempt,
    Params(params): Params<PageParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let place = from(params.cursor.as_deref())?;
    let lines_max = page_limit(params.limit)?;
    let records = state.store.attempts(id).await?.ok_or_else(|| ApiError::not_found("job"))?;
    if !records.iter().any(|record| record.number == number) {
        return Err(ApiError::not_found("attempt"));
    }
    page(&state, LogQuery { attempt: Some(number), lines_max, ..query(&state, id, place) }, turn).await
}

/// Which lines.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogParams {
    /// Only lines of this attempt.
    attempt: Option<u32>,
    /// `true`: answer with a line of JSON (`application/x-ndjson`) for each line of the log, and go on with new ones
    /// until the job has ended, or the attempt if there is one. Each line has a `cursor` to go on after it.
    follow: Option<bool>,
    /// Items of a page, 1 to 1000. Default 50. Not with `follow`.
    limit: Option<usize>,
    /// `next_cursor` of the page before, or `cursor` of a line that was followed.
    cursor: Option<String>,
}

/// List the log lines of all attempts of a job, or follow them
#[utoipa::path(get, operation_id = "list_job_logs", path = "/api/v1/jobs/{id}/logs", tag = "jobs",
    params(("id" = String, Path), LogParams),
    responses((status = 200, description = "The log lines", body = List<LogLine>)))]
pub async fn of_job(
    State(state): State<ApiState>,
    Id(id): Id,
    Params(params): Params<LogParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let place = from(params.cursor.as_deref())?;
    let follow = params.follow.unwrap_or(false);
    if follow && params.limit.is_some() {
        return Err(ApiError::new(Code::InvalidParameter, "limit: not with `follow`"));
    }
    let lines_max = page_limit(params.limit)?;
    find(&state, id).await?;
    let query = LogQuery { attempt: params.attempt, lines_max, ..query(&state, id, place) };
    if follow { followed(state, query) } else { page(&state, query, turn).await }
}

fn from(cursor: Option<&str>) -> ApiResult<LogPlace> {
    cursor.map_or(Ok(LogPlace::default()), parse_log_cursor)
}

fn query(state: &ApiState, job_id: JobId, from: LogPlace) -> LogQuery {
    LogQuery { job_id, attempt: None, from, lines_max: 0, bytes_max: state.limits.page_bytes_max }
}

async fn page(state: &ApiState, query: LogQuery, turn: Turn) -> ApiResult<Response> {
    let LogPage { lines, next, is_last } = state.store.read_logs(query).await?;
    let cursor = (!is_last).then(|| log_cursor(next));
    let items = lines.into_iter().map(|line| convert::log_line(&line, None));
    Ok(Streamed::page(items, cursor.as_deref(), turn).into_response())
}

fn followed(state: ApiState, query: LogQuery) -> ApiResult<Response> {
    let follower = state.notes.follow(query.job_id).ok_or_else(|| {
        ApiError::new(Code::Overloaded, "too many clients follow logs; read them page by page")
    })?;
    let query = LogQuery { lines_max: PIECE_LINES_MAX, bytes_max: PIECE_BYTES_MAX, ..query };
    let following =
        Following { state, query, follower, spoke_at: Instant::now(), _waiting: Present::waiting() };
    let pieces = stream::unfold(following, async |mut following| {
        let piece = following.next_piece().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), following))
    });
    let body = Body::from_stream(pieces);
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// Somebody who follows the log of a job.
struct Following {
    state: ApiState,
    query: LogQuery,
    follower: Box<dyn LogFollower>,
    /// When something was last sent.
    spoke_at: Instant,
    _waiting: Present,
}

impl Following {
    /// What to send next. `None`: there will be nothing more.
    async fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            // Listens before it looks, and looks for the end before it looks for lines: nothing is missed.
            let end = self.state.scheduler.end_of(self.query.job_id);
            // While the store is away, whoever follows waits.
            if let Ok((is_over, page)) = self.look().await {
                if !page.lines.is_empty() {
                    self.query.from = page.next;
                    self.spoke_at = Instant::now();
                    return Some(text(&page));
                }
                if is_over {
                    return None;
                }
            }
            if !(self.state.ready)() {
                return None;
            }
            if self.spoke_at.elapsed() >= SILENCE_MAX {
                self.spoke_at = Instant::now();
                return Some(Bytes::from_static(b"\n"));
            }
            tokio::select! {
                () = self.follower.new_lines() => {}
                () = end => {}
                () = tokio::time::sleep(ASK_INTERVAL) => {}
            }
        }
    }

    /// Whether the job, or the attempt, is over, and the next lines.
    async fn look(&self) -> ApiResult<(bool, LogPage)> {
        let is_over = self.is_over().await?;
        Ok((is_over, self.state.store.read_logs(self.query).await?))
    }

    async fn is_over(&self) -> ApiResult<bool> {
        let id = self.query.job_id;
        if !self.state.store.ended_among(vec![id]).await?.is_empty() {
            return Ok(true);
        }
        let Some(attempt) = self.query.attempt else { return Ok(false) };
        let job = self.state.store.get_job(id).await?;
        let runs = job.is_some_and(|job| {
            job.attempt < attempt || (job.attempt == attempt && job.state() == tickwheel_core::State::Running)
        });
        Ok(!runs)
    }
}

fn text(page: &LogPage) -> Bytes {
    let mut text = Vec::new();
    for line in &page.lines {
        match convert::log_line(line, Some(log_cursor(line.next()))) {
            Ok(line) => {
                serde_json::to_writer(&mut text, &line).expect("what is answered can be written as JSON")
            }
            Err(error) => {
                tracing::error!(%error, "a line of a log cannot be shown");
                continue;
            }
        }
        text.push(b'\n');
    }
    text.into()
}
