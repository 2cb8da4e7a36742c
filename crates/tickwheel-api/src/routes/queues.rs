//! Queues: what the store knows about them, and what this node sees in them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use tickwheel_core::ports::DUE_COUNT_MAX;
use tickwheel_protocol::{List, Queue};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::{ApiError, ApiResult};
use crate::extract::{Name, Nothing, OptionalJson};
use crate::lists::page_after;
use crate::params::{PageParams, Params, page_limit, parse_queue_cursor, queue_cursor};
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// List queues by name
#[utoipa::path(get, operation_id = "list_queues", path = "/api/v1/queues", tag = "queues", params(PageParams),
    responses((status = 200, description = "The queues", body = List<Queue>)))]
async fn list(
    State(state): State<ApiState>,
    Params(params): Params<PageParams>,
) -> ApiResult<Json<List<Queue>>> {
    let limit = page_limit(params.limit)?;
    let after = params.cursor.as_deref().map(parse_queue_cursor).transpose()?;
    let queues = known_queues(&state).await?.into_values();
    let mut page = page_after(queues, after.as_ref(), limit, |queue| queue.name.clone());
    count_waiting(&state, &mut page.items).await?;
    Ok(Json(List { items: page.items, next_cursor: page.next.as_deref().map(queue_cursor) }))
}

/// Get a queue
#[utoipa::path(get, operation_id = "get_queue", path = "/api/v1/queues/{name}", tag = "queues", params(("name" = String, Path)),
    responses((status = 200, description = "The queue", body = Queue)))]
async fn get(State(state): State<ApiState>, Name(name): Name) -> ApiResult<Json<Queue>> {
    find(&state, &name).await.map(Json)
}

/// Pause a queue: start none of its jobs until it is resumed
///
/// A queue can be paused before it has any job.
#[utoipa::path(post, operation_id = "pause_queue", path = "/api/v1/queues/{name}/pause", tag = "queues", params(("name" = String, Path)),
    responses((status = 200, description = "The queue is paused", body = Queue)))]
async fn pause(
    State(state): State<ApiState>,
    Name(name): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<Queue>> {
    state.scheduler.set_queue_paused(&name, true).await?;
    find(&state, &name).await.map(Json)
}

/// Resume a paused queue
#[utoipa::path(post, operation_id = "resume_queue", path = "/api/v1/queues/{name}/resume", tag = "queues", params(("name" = String, Path)),
    responses((status = 200, description = "The queue is resumed", body = Queue)))]
async fn resume(
    State(state): State<ApiState>,
    Name(name): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<Queue>> {
    state.scheduler.set_queue_paused(&name, false).await?;
    find(&state, &name).await.map(Json)
}

async fn find(state: &ApiState, name: &str) -> ApiResult<Queue> {
    let mut queue = known_queues(state).await?.remove(name).ok_or_else(|| ApiError::not_found("queue"))?;
    count_waiting(state, std::slice::from_mut(&mut queue)).await?;
    Ok(queue)
}

/// Nodes do not load what they may not start or what nobody could run, so the store counts as well.
pub async fn count_waiting(state: &ApiState, queues: &mut [Queue]) -> ApiResult<()> {
    let names = queues.iter().map(|queue| queue.name.clone()).collect();
    let counts = state.store.count_due(names, state.now(), DUE_COUNT_MAX).await?;
    for (queue, count) in queues.iter_mut().zip(counts) {
        let count = count.at_least(queue.waiting);
        (queue.waiting, queue.more_waiting) = (count.jobs, count.more);
    }
    Ok(())
}

/// The store knows which queues exist and which are paused; this node knows what it sees in them.
pub async fn known_queues(state: &ApiState) -> ApiResult<BTreeMap<String, Queue>> {
    let known = state.store.list_queues().await?;
    let queue = |name, paused| Queue { name, paused, waiting: 0, more_waiting: false, running: 0 };
    let mut queues: BTreeMap<_, _> =
        known.into_iter().map(|known| (known.name.clone(), queue(known.name, known.paused))).collect();
    for seen in state.scheduler.snapshot().await.queues {
        if let Some(queue) = queues.get_mut(&seen.name) {
            queue.waiting = seen.waiting;
            queue.running = seen.running;
        }
    }
    Ok(queues)
}
