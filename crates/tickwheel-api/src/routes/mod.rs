//! The calls, one file per noun.

mod admin;
mod attempts;
mod calendars;
mod cron;
mod dead_letters;
mod health;
mod index;
mod jobs;
mod queues;
mod schedules;
mod workers;
mod workflow_runs;
mod workflows;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::routing::get;
use tickwheel_protocol::Code;
use utoipa_axum::router::OpenApiRouter;

use crate::error::ApiError;
use crate::layers;
use crate::metrics;
use crate::state::ApiState;

/// Everything the server answers.
pub fn router(state: ApiState) -> Router {
    metrics::describe();
    let (router, _) = documented().split_for_parts();
    router
        .route("/", get(index::index))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(state.clone(), layers::guard))
        .with_state(state)
}

/// The calls that the OpenAPI document describes.
pub fn documented() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .merge(jobs::routes())
        .merge(attempts::routes())
        .merge(dead_letters::routes())
        .merge(queues::routes())
        .merge(workers::routes())
        .merge(schedules::routes())
        .merge(calendars::routes())
        .merge(cron::routes())
        .merge(workflows::routes())
        .merge(workflow_runs::routes())
        .merge(admin::routes())
        .merge(health::routes())
}

async fn no_such_path(request: Request) -> ApiError {
    ApiError::new(Code::NotFound, format!("there is nothing at {}", request.uri().path()))
}

async fn no_such_method(request: Request) -> ApiError {
    let (method, path) = (request.method(), request.uri().path());
    ApiError::new(Code::MethodNotAllowed, format!("{path} does not support {method}"))
}
