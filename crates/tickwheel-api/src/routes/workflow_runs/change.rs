//! What people do to a run and its tasks. Once answered, the change is in force.

use axum::extract::State;
use axum::response::Response;
use tickwheel_core::RunId;
use tickwheel_core::ports::RunChanged;
use tickwheel_core::workflow::RunCommand;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{CompleteTask, WorkflowRun};

use super::no_such_run;
use super::read::answer;
use crate::convert;
use crate::error::ApiResult;
use crate::extract::{Nothing, OptionalJson, Run, RunAndTask};
use crate::runs;
use crate::state::ApiState;

/// Applies a command to a run, and answers with it.
async fn change(state: &ApiState, id: RunId, command: RunCommand) -> ApiResult<Response> {
    // Before anything is changed: who is refused for want of room has changed nothing.
    let room = runs::room_for(state, id).await?.ok_or_else(no_such_run)?;
    match state.workflows.change(id, command).await? {
        RunChanged::Done(_) => {
            let (view, room) = runs::read_into(state, id, room).await?.ok_or_else(no_such_run)?;
            answer(view, room)
        }
        RunChanged::Refused(refused) => Err(refused.into()),
        RunChanged::NotFound => Err(no_such_run()),
    }
}

/// Pause a run
///
/// None of its tasks starts after the answer, until the run is resumed. What runs goes on, and what its end lets go
/// waits. A run that is paused already stays so.
#[utoipa::path(post, operation_id = "pause_workflow_run", path = "/api/v1/workflow-runs/{id}/pause", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn pause(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Pause).await
}

/// Let a paused run go on
///
/// What has become due meanwhile starts. A run that is not paused stays as it is.
#[utoipa::path(post, operation_id = "resume_workflow_run", path = "/api/v1/workflow-runs/{id}/resume", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn resume(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Resume).await
}

/// Cancel a run
///
/// What has not started is cancelled, what runs is asked to stop. The tasks that come after all others are run. A pause
/// ends with it.
#[utoipa::path(post, operation_id = "cancel_workflow_run", path = "/api/v1/workflow-runs/{id}/cancel", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn cancel(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Cancel).await
}

/// Run again what failed or was cancelled, and go on from there
///
/// What completed stays completed.
#[utoipa::path(post, operation_id = "retry_workflow_run", path = "/api/v1/workflow-runs/{id}/retry", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn retry(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Retry).await
}

/// Go on as if a task had completed, without a result
#[utoipa::path(post, operation_id = "skip_workflow_task", path = "/api/v1/workflow-runs/{id}/tasks/{task}/skip", tag = "workflow runs",
    params(("id" = String, Path), ("task" = String, Path, description = "Its name, or its path, such as `load[3].check`")),
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn skip_task(
    State(state): State<ApiState>,
    RunAndTask(id, task): RunAndTask,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Skip(task)).await
}

/// Go on as if a task had completed, with this result
#[utoipa::path(post, operation_id = "complete_workflow_task", path = "/api/v1/workflow-runs/{id}/tasks/{task}/complete",
    tag = "workflow runs",
    params(("id" = String, Path), ("task" = String, Path, description = "Its name, or its path, such as `load[3].check`")),
    request_body = CompleteTask,
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn complete_task(
    State(state): State<ApiState>,
    RunAndTask(id, task): RunAndTask,
    OptionalJson(request): OptionalJson<CompleteTask>,
) -> ApiResult<Response> {
    request.validate(&state.limits)?;
    let result = request.result.as_deref().map(convert::payload);
    change(&state, id, RunCommand::Complete(task, result)).await
}

/// Run a task again that failed, was cancelled or was skipped
///
/// Of a fan-out, its elements that failed or were cancelled.
#[utoipa::path(post, operation_id = "retry_workflow_task", path = "/api/v1/workflow-runs/{id}/tasks/{task}/retry", tag = "workflow runs",
    params(("id" = String, Path), ("task" = String, Path, description = "Its name, or its path, such as `load[3].check`")),
    responses((status = 200, description = "The run as it is now", body = WorkflowRun)))]
pub async fn retry_task(
    State(state): State<ApiState>,
    RunAndTask(id, task): RunAndTask,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::RetryTask(task)).await
}
