//! Deleting a workflow. When the call answers, nothing can start a run of it any more.

use axum::extract::State;
use hyper::StatusCode;
use tickwheel_core::job::DEFAULT_TENANT;

use super::{no_such_workflow, schedule};
use crate::error::ApiResult;
use crate::extract::{Name, Nothing, OptionalJson};
use crate::state::ApiState;

/// Delete a workflow and its schedule
///
/// No run of it can start after the answer. Existing runs go on with their versions. A definition that is stored under
/// the same name later becomes the next version.
#[utoipa::path(delete, operation_id = "delete_workflow", path = "/api/v1/workflows/{name}", tag = "workflows",
    params(("name" = String, Path)),
    responses((status = 204, description = "The workflow is deleted")))]
pub async fn delete(
    State(state): State<ApiState>,
    Name(name): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<StatusCode> {
    // The schedule first: whatever stops this on the way, nothing fires for a workflow that is gone, and the same request does the rest.
    schedule::put(&state, &name, None).await?;
    if state.workflows.remove(DEFAULT_TENANT, &name).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_workflow())
    }
}
