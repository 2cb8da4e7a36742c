//! Dead letters: look at them, run them again, or let them go.

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

/// So long somebody waits for many to be run again.
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
    /// Of this type.
    #[serde(rename = "type")]
    job_type: Option<String>,
    /// Of this queue.
    queue: Option<String>,
    /// Items of a page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Jobs that were given up, the latest first
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

/// One dead letter
#[utoipa::path(get, operation_id = "get_dead_letter", path = "/api/v1/dead-letters/{job_id}", tag = "dead letters",
    params(("job_id" = String, Path)),
    responses((status = 200, description = "The dead letter", body = DeadLetter)))]
async fn get(State(state): State<ApiState>, Id(id): Id) -> ApiResult<Response> {
    let mut letter = state.store.get_dead_letter(id).await?.ok_or_else(no_such_letter)?;
    resolve_payloads(&*state.store, vec![&mut letter.job], usize::MAX).await?;
    state.memory.document(&convert::dead_letter(&letter)?)
}

/// Run one again, perhaps with another payload
///
/// The body may be left out.
#[utoipa::path(post, operation_id = "redrive_dead_letter", path = "/api/v1/dead-letters/{job_id}/redrive", tag = "dead letters",
    params(("job_id" = String, Path)), request_body = Redrive,
    responses((status = 200, description = "It will run again", body = Job)))]
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

/// Run many again
///
/// Goes on in the background, whether the client waits or not: the answer is 200 if it was over within a moment, and otherwise 202 and where to look.
/// A request that names neither a type nor a queue has to say `"all": true`. Each is run again once, also if it fails again meanwhile.
#[utoipa::path(post, operation_id = "redrive_dead_letters", path = "/api/v1/dead-letters/redrive", tag = "dead letters", request_body = RedriveFilter,
    responses(
        (status = 200, description = "They will run again", body = RedriveProgress),
        (status = 202, description = "It is under way", body = RedriveProgress)))]
async fn redrive_many(
    State(state): State<ApiState>,
    OptionalJson(filter): OptionalJson<RedriveFilter>,
) -> ApiResult<Response> {
    filter.validate(&state.limits)?;
    let redrive = convert::redrive(filter, state.now());
    let progress = state.redrives.redrive(redrive, REDRIVE_WAIT).await.map_err(|error| match error {
        SchedulerError::Overloaded => {
            let detail = "too many dead letters are being run again already; nothing was changed";
            ApiError::new(Code::Overloaded, detail)
        }
        error => error.into(),
    })?;
    let location = [(LOCATION, format!("/api/v1/dead-letters/redrive/{}", progress.id))];
    let status = if progress.is_running() { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, location, Json(convert::redrive_progress(&progress))).into_response())
}

/// How far it is with running many again
///
/// 404 if the server was started anew since: ask again with the same `failed_before`, and the rest is done.
#[utoipa::path(get, operation_id = "get_redrive", path = "/api/v1/dead-letters/redrive/{id}", tag = "dead letters",
    params(("id" = String, Path)),
    responses((status = 200, description = "How far it is", body = RedriveProgress)))]
async fn redrive_progress(State(state): State<ApiState>, Name(id): Name) -> ApiResult<Json<RedriveProgress>> {
    let progress = id.parse().ok().and_then(|id| state.redrives.progress(id));
    let progress = progress.ok_or_else(|| ApiError::not_found("redrive"))?;
    Ok(Json(convert::redrive_progress(&progress)))
}

/// Take one off the list; the job stays in history
#[utoipa::path(delete, operation_id = "discard_dead_letter", path = "/api/v1/dead-letters/{job_id}", tag = "dead letters",
    params(("job_id" = String, Path)), responses((status = 204, description = "It is off the list")))]
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
