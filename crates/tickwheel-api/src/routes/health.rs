//! Endpoints for load balancers, monitoring and tools.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::CONTENT_TYPE;
use serde::Serialize;
use tickwheel_core::failure_streak::SharedFailureStreak;
use tickwheel_protocol::Code;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::{ApiError, ApiResult};
use crate::openapi::openapi;
use crate::state::ApiState;

/// A store that takes longer to answer a ping counts as unreachable.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
static NOT_READY: SharedFailureStreak = SharedFailureStreak::none();

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(metrics))
        .routes(routes!(openapi_json))
}

/// The state of the server.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

/// Check whether the process is alive
#[utoipa::path(get, operation_id = "healthz", path = "/healthz", tag = "health", responses((status = 200, description = "The process is alive", body = Health)))]
async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Check whether the server is ready for traffic
#[utoipa::path(get, operation_id = "readyz", path = "/readyz", tag = "health", responses((status = 200, description = "The server is ready", body = Health)))]
async fn readyz(State(state): State<ApiState>) -> ApiResult<Json<Health>> {
    let not_ready = |detail: &str| Err(ApiError::new(Code::NotReady, detail));
    if !(state.ready)() {
        return not_ready("the server is starting or shutting down");
    }
    match tokio::time::timeout(PING_TIMEOUT, state.store.ping()).await {
        Ok(Ok(())) => Ok(Json(Health { status: "ready" })),
        Ok(Err(error)) => {
            if let Some(repeats) = NOT_READY.failed(Instant::now()) {
                tracing::warn!(%error, repeats, "not ready: the store does not answer");
            }
            not_ready("the store is not available")
        }
        Err(_) => not_ready("the store does not answer in time"),
    }
}

/// Get metrics in the Prometheus text format
#[utoipa::path(get, operation_id = "metrics", path = "/metrics", tag = "health",
    responses((status = 200, description = "The metrics", body = String, content_type = "text/plain")))]
async fn metrics(State(state): State<ApiState>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (state.metrics)()).into_response()
}

/// Get this OpenAPI document
#[utoipa::path(get, operation_id = "openapi", path = "/openapi.json", tag = "health",
    responses((status = 200, description = "The OpenAPI document", body = Object)))]
async fn openapi_json() -> Response {
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| openapi().to_json().expect("the document has only strings and numbers"));
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}
