//! The stop switch, and the state of the server.

use axum::Json;
use axum::extract::State;
use tickwheel_protocol::{Queue, SystemStatus};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ApiResult;
use crate::extract::{Nothing, OptionalJson};
use crate::routes::queues::{count_waiting, known_queues};
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(status)).routes(routes!(halt)).routes(routes!(resume))
}

/// Get the state of this node
#[utoipa::path(get, operation_id = "get_status", path = "/api/v1/admin/status", tag = "admin",
    responses((status = 200, description = "The state of the node", body = SystemStatus)))]
async fn status(State(state): State<ApiState>) -> ApiResult<Json<SystemStatus>> {
    let here = state.scheduler.snapshot().await;
    let mut queues: Vec<Queue> = known_queues(&state).await?.into_values().collect();
    count_waiting(&state, &mut queues).await?;
    Ok(Json(SystemStatus {
        halted: state.store.halted().await?,
        slots: here.slots,
        slots_free: here.slots_free,
        waiting: queues.iter().map(|queue| queue.waiting).sum(),
        running: here.queues.iter().map(|queue| queue.running).sum(),
        dead_letters: state.store.count_dead_letters().await?,
    }))
}

/// Halt: start no jobs on any node until resumed
#[utoipa::path(post, operation_id = "halt", path = "/api/v1/admin/halt", tag = "admin",
    responses((status = 200, description = "No job starts until resumed", body = SystemStatus)))]
async fn halt(state: State<ApiState>, _: OptionalJson<Nothing>) -> ApiResult<Json<SystemStatus>> {
    state.scheduler.set_halted(true).await?;
    status(state).await
}

/// Resume: start jobs again
#[utoipa::path(post, operation_id = "resume", path = "/api/v1/admin/resume", tag = "admin",
    responses((status = 200, description = "Jobs start again", body = SystemStatus)))]
async fn resume(state: State<ApiState>, _: OptionalJson<Nothing>) -> ApiResult<Json<SystemStatus>> {
    state.scheduler.set_halted(false).await?;
    status(state).await
}
