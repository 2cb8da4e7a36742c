//! Dead letters: list, redrive or discard them.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::LOCATION;
use serde::Deserialize;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{DeadLetterQuery, Projection, SchedulerError};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Code, DeadLetter, Job, List, Redrive, RedriveFilter, RedriveProgress};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Id, Name, Nothing, OptionalJson};
use crate::memory::Turn;
use crate::params::{Params, dead_letter_cursor, page_limit, parse_dead_letter_cursor};
use crate::payloads::resolve_payloads;
use crate::routes::jobs::change;
use crate::state::ApiState;
use crate::streamed::Streamed;

/// How long a request waits for a redrive of many to end.
const REDRIVE_WAIT: Duration = Duration::from_secs(1);

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(redrive_many))
        .routes(routes!(redrive_progress))
        .routes(routes!(get, discard))
        .routes(routes!(redrive))
}

/// Which dead letters to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParams {
    /// Only jobs of this type.
    #[serde(rename = "type")]
    job_type: Option<String>,
    /// Only jobs of this queue.
    queue: Option<String>,
    /// How many items per page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// List dead letters, latest first
#[utoipa::path(get, operation_id = "list_dead_letters", path = "/api/v1/dead-letters", tag = "dead letters", params(ListParams),
    responses((status = 200, description = "The dead letters", body = List<DeadLetter>)))]
async fn list(
    State(state): State<ApiState>,
    Params(params): Params<ListParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let query = DeadLetterQuery {
        job_type: params.job_type,
        queue: params.queue,
        after: params.cursor.as_deref().map(parse_dead_letter_cursor).transpose()?,
        limit: page_limit(params.limit)?,
        projection: Projection { result: false, bytes_max: state.limits.page_bytes_max, payload: true },
    };
    let bytes_max = query.projection.bytes_max;
    let mut page = state.store.list_dead_letters(query).await?;
    let jobs = page.items.iter_mut().map(|letter| &mut letter.job).collect();
    let fitting = resolve_payloads(&*state.store, jobs, bytes_max).await?;
    if fitting < page.items.len() {
        page.items.truncate(fitting);
        page.next = page.items.last().map(|last| last.cursor());
    }
    let items = page.items.into_iter().map(|letter| convert::dead_letter(&letter));
    Ok(Streamed::page(items, page.next.map(dead_letter_cursor).as_deref(), turn).into_response())
}

/// Get a dead letter
#[utoipa::path(get, operation_id = "get_dead_letter", path = "/api/v1/dead-letters/{job_id}", tag = "dead letters",
    params(("job_id" = String, Path)),
    responses((status = 200, description = "The dead letter", body = DeadLetter)))]
async fn get(State(state): State<ApiState>, Id(id): Id) -> ApiResult<Response> {
    let mut letter = state.store.get_dead_letter(id).await?.ok_or_else(no_such_letter)?;
    resolve_payloads(&*state.store, vec![&mut letter.job], usize::MAX).await?;
    state.memory.document(&convert::dead_letter(&letter)?)
}

/// Redrive a dead letter, optionally with a new payload
///
/// The body is optional.
#[utoipa::path(post, operation_id = "redrive_dead_letter", path = "/api/v1/dead-letters/{job_id}/redrive", tag = "dead letters",
    params(("job_id" = String, Path)), request_body = Redrive,
    responses((status = 200, description = "The job will run again", body = Job)))]
async fn redrive(
    State(state): State<ApiState>,
    Id(id): Id,
    OptionalJson(redrive): OptionalJson<Redrive>,
) -> ApiResult<Json<Job>> {
    redrive.validate(&state.limits)?;
    state.store.get_dead_letter(id).await?.ok_or_else(no_such_letter)?;
    let payload = redrive.payload.as_deref().map(convert::payload);
    change(&state, id, Change::Retry { payload }).await
}

/// Redrive many dead letters
///
/// The redrive goes on in the background, whether or not the client waits. The answer is 200 if it ends quickly.
/// Otherwise it is 202, and `Location` says where to read its progress. A request without `type` and `queue` must say
/// `"all": true`. Each job is redriven once, even if it fails again meanwhile.
#[utoipa::path(post, operation_id = "redrive_dead_letters", path = "/api/v1/dead-letters/redrive", tag = "dead letters", request_body = RedriveFilter,
    responses(
        (status = 200, description = "The redrive has ended", body = RedriveProgress),
        (status = 202, description = "The redrive is running", body = RedriveProgress)))]
async fn redrive_many(
    State(state): State<ApiState>,
    OptionalJson(filter): OptionalJson<RedriveFilter>,
) -> ApiResult<Response> {
    filter.validate(&state.limits)?;
    let redrive = convert::redrive(filter, state.now());
    let progress = state.redrives.redrive(redrive, REDRIVE_WAIT).await.map_err(|error| match error {
        SchedulerError::Overloaded => {
            let detail = "too many redrives are running already; nothing was changed";
            ApiError::new(Code::Overloaded, detail)
        }
        error => error.into(),
    })?;
    let location = [(LOCATION, format!("/api/v1/dead-letters/redrive/{}", progress.id))];
    let status = if progress.is_running() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, location, Json(convert::redrive_progress(&progress))).into_response())
}

/// Get the progress of a redrive
///
/// 404 if the server has restarted since. Send the request again with the same `failed_before` to do the rest.
#[utoipa::path(get, operation_id = "get_redrive", path = "/api/v1/dead-letters/redrive/{id}", tag = "dead letters",
    params(("id" = String, Path)),
    responses((status = 200, description = "The progress", body = RedriveProgress)))]
async fn redrive_progress(State(state): State<ApiState>, Name(id): Name) -> ApiResult<Json<RedriveProgress>> {
    let progress = id.parse().ok().and_then(|id| state.redrives.progress(id));
    let progress = progress.ok_or_else(|| ApiError::not_found("redrive"))?;
    Ok(Json(convert::redrive_progress(&progress)))
}

/// Discard a dead letter; the job stays in the history
#[utoipa::path(delete, operation_id = "discard_dead_letter", path = "/api/v1/dead-letters/{job_id}", tag = "dead letters",
    params(("job_id" = String, Path)), responses((status = 204, description = "The dead letter is discarded")))]
async fn discard(
    State(state): State<ApiState>,
    Id(id): Id,
    _: OptionalJson<Nothing>,
) -> ApiResult<StatusCode> {
    if state.scheduler.discard_dead_letter(id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_letter())
    }
}

fn no_such_letter() -> ApiError {
    ApiError::not_found("dead letter")
}
