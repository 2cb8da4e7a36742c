//! Runs of workflows: reading them and their tasks, and commands for them.

mod change;
mod read;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ApiError;
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(read::list))
        .routes(routes!(read::get))
        .routes(routes!(read::items))
        .routes(routes!(change::pause))
        .routes(routes!(change::resume))
        .routes(routes!(change::cancel))
        .routes(routes!(change::retry))
        .routes(routes!(change::skip_task))
        .routes(routes!(change::complete_task))
        .routes(routes!(change::retry_task))
}

fn no_such_run() -> ApiError {
    ApiError::not_found("run")
}
