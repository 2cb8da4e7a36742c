//! Workflows: storing, reading, drawing and deleting definitions. Runs are a noun of their own.

mod create;
mod delete;
mod read;
mod schedule;
mod start;

use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::workflow::Workflow;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(create::create, read::list))
        .routes(routes!(read::get, delete::delete))
        .routes(routes!(read::versions))
        .routes(routes!(read::graph))
        .routes(routes!(start::start))
}

/// A version of a workflow, or the latest one.
async fn find(state: &ApiState, name: &str, version: Option<u32>) -> ApiResult<Workflow> {
    let found = state.store.get_workflow(DEFAULT_TENANT, name, version).await?;
    found.ok_or_else(|| match version {
        Some(_) => ApiError::not_found("version of the workflow"),
        None => no_such_workflow(),
    })
}

fn no_such_workflow() -> ApiError {
    ApiError::not_found("workflow")
}
