//! Queues: what the store knows about them, and what this node sees in them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
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
    for queue in &mut page.items {
        count_if_paused(&state, queue).await?;
    }
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
    count_if_paused(state, &mut queue).await?;
    Ok(queue)
}

/// Nodes do not load what they may not start, so the store counts the waiting jobs of a paused queue.
async fn count_if_paused(state: &ApiState, queue: &mut Queue) -> ApiResult<()> {
    if queue.paused {
        queue.waiting = state.store.count_due(&queue.name, state.now()).await?;
    }
    Ok(())
}

/// The store knows which queues exist and which are paused; this node knows what it sees in them.
async fn known_queues(state: &ApiState) -> ApiResult<BTreeMap<String, Queue>> {
    let known = state.store.list_queues().await?;
    let mut queues: BTreeMap<_, _> = known
        .into_iter()
        .map(|queue| {
            (queue.name.clone(), Queue { name: queue.name, paused: queue.paused, waiting: 0, running: 0 })
        })
        .collect();
    for seen in state.scheduler.snapshot().await.queues {
        if let Some(queue) = queues.get_mut(&seen.name) {
            queue.waiting = seen.waiting;
            queue.running = seen.running;
        }
    }
    Ok(queues)
}
