//! Dead letters: look at them, run them again, or let them go.

use axum::Json;
use axum::extract::State;
use futures::stream::{self, StreamExt, TryStreamExt};
use hyper::StatusCode;
use serde::Deserialize;
use tickwheel_core::JobId;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{Changed, DeadLetterQuery, Extent};
use tickwheel_protocol::page::LIMIT_MAX;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{DeadLetter, Job, List, Redrive, RedriveFilter, RedriveSummary};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Id, Nothing, OptionalJson};
use crate::lists::Listed;
use crate::memory::Turn;
use crate::params::{Params, dead_letter_cursor, page_limit, parse_dead_letter_cursor};
use crate::routes::jobs::change;
use crate::state::ApiState;

/// Enough to fill a commit of the store, few enough not to crowd out everybody else.
const REDRIVES_AT_ONCE: usize = 64;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(redrive_many))
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
) -> ApiResult<Listed<DeadLetter>> {
    let query = DeadLetterQuery {
        job_type: params.job_type,
        queue: params.queue,
        after: params.cursor.as_deref().map(parse_dead_letter_cursor).transpose()?,
        limit: page_limit(params.limit)?,
        extent: Extent { result: false, bytes_max: state.limits.page_bytes_max, payload: true },
    };
    let page = state.store.list_dead_letters(query).await?;
    let items = page.items.iter().map(convert::dead_letter).collect::<ApiResult<_>>()?;
    Ok(Listed::new(turn, items, page.next.map(dead_letter_cursor)))
}

/// One dead letter
#[utoipa::path(get, operation_id = "get_dead_letter", path = "/api/v1/dead-letters/{job_id}", tag = "dead letters",
    params(("job_id" = String, Path)),
    responses((status = 200, description = "The dead letter", body = DeadLetter)))]
async fn get(State(state): State<ApiState>, Id(id): Id) -> ApiResult<Json<DeadLetter>> {
    let letter = state.store.get_dead_letter(id).await?.ok_or_else(no_such_letter)?;
    convert::dead_letter(&letter).map(Json)
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
    change(&state, id, Change::Revive { payload }).await
}

/// Run many again
///
/// Without a body: all of them, up to the limit.
#[utoipa::path(post, operation_id = "redrive_dead_letters", path = "/api/v1/dead-letters/redrive", tag = "dead letters", request_body = RedriveFilter,
    responses((status = 200, description = "They will run again", body = RedriveSummary)))]
async fn redrive_many(
    State(state): State<ApiState>,
    OptionalJson(filter): OptionalJson<RedriveFilter>,
) -> ApiResult<Json<RedriveSummary>> {
    filter.validate(&state.limits)?;
    let mut left = filter.limit.unwrap_or(LIMIT_MAX);
    let extent = Extent { payload: false, result: false, bytes_max: state.limits.page_bytes_max };
    let mut query =
        DeadLetterQuery { job_type: filter.job_type, queue: filter.queue, after: None, limit: left, extent };
    let mut redriven = 0;
    while left > 0 {
        query.limit = left;
        let page = state.store.list_dead_letters(query.clone()).await?;
        left = left.saturating_sub(page.items.len());
        redriven += revive_all(&state, page.items.iter().map(|letter| letter.job.id).collect()).await?;
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let remaining = state.store.count_dead_letters().await?;
    Ok(Json(RedriveSummary { redriven, remaining }))
}

/// Several at once, so that they share commits. One that somebody else took off the list meanwhile is not counted.
async fn revive_all(state: &ApiState, ids: Vec<JobId>) -> ApiResult<u64> {
    let revived = stream::iter(ids)
        .map(|id| state.scheduler.change(id, Change::Revive { payload: None }))
        .buffer_unordered(REDRIVES_AT_ONCE);
    let count = revived.try_fold(0, |count, changed| async move {
        Ok(count + u64::from(matches!(changed, Changed::Done(_))))
    });
    Ok(count.await?)
}

/// Take one off the list; the job stays in history
#[utoipa::path(delete, operation_id = "discard_dead_letter", path = "/api/v1/dead-letters/{job_id}", tag = "dead letters",
    params(("job_id" = String, Path)), responses((status = 204, description = "It is off the list")))]
async fn discard(
    State(state): State<ApiState>,
    Id(id): Id,
    _: OptionalJson<Nothing>,
) -> ApiResult<StatusCode> {
    if state.store.discard_dead_letter(id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_letter())
    }
}

fn no_such_letter() -> ApiError {
    ApiError::not_found("dead letter")
}
