//! Commands for a run and its tasks. When the call answers, the change is in force.

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
/// No task starts after the answer until the run is resumed. Running tasks go on, and the tasks that depend on them
/// wait. A run that is paused already does not change.
#[utoipa::path(post, operation_id = "pause_workflow_run", path = "/api/v1/workflow-runs/{id}/pause", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn pause(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Pause).await
}

/// Resume a paused run
///
/// Tasks that came due meanwhile start. A run that is not paused does not change.
#[utoipa::path(post, operation_id = "resume_workflow_run", path = "/api/v1/workflow-runs/{id}/resume", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn resume(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Resume).await
}

/// Cancel a run
///
/// Tasks that have not started are cancelled, and running ones are asked to stop. The `after` tasks still run. If the
/// run was paused, it is resumed.
#[utoipa::path(post, operation_id = "cancel_workflow_run", path = "/api/v1/workflow-runs/{id}/cancel", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn cancel(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Cancel).await
}

/// Retry a run: run what failed or was cancelled again, and go on from there
///
/// Completed tasks stay completed.
#[utoipa::path(post, operation_id = "retry_workflow_run", path = "/api/v1/workflow-runs/{id}/retry", tag = "workflow runs",
    params(("id" = String, Path)),
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn retry(
    State(state): State<ApiState>,
    Run(id): Run,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Retry).await
}

/// Skip a task: go on as if it had completed, without a result
#[utoipa::path(post, operation_id = "skip_workflow_task", path = "/api/v1/workflow-runs/{id}/tasks/{task}/skip", tag = "workflow runs",
    params(("id" = String, Path), ("task" = String, Path, description = "The name or path of the task, such as `load[3].check`")),
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn skip_task(
    State(state): State<ApiState>,
    RunAndTask(id, task): RunAndTask,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::Skip(task)).await
}

/// Complete a task by hand: go on as if it had completed, with this result
#[utoipa::path(post, operation_id = "complete_workflow_task", path = "/api/v1/workflow-runs/{id}/tasks/{task}/complete",
    tag = "workflow runs",
    params(("id" = String, Path), ("task" = String, Path, description = "The name or path of the task, such as `load[3].check`")),
    request_body = CompleteTask,
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn complete_task(
    State(state): State<ApiState>,
    RunAndTask(id, task): RunAndTask,
    OptionalJson(request): OptionalJson<CompleteTask>,
) -> ApiResult<Response> {
    request.validate(&state.limits)?;
    let result = request.result.as_deref().map(convert::payload);
    change(&state, id, RunCommand::Complete(task, result)).await
}

/// Retry a task that failed, was cancelled or was skipped
///
/// For a fan-out, this retries the items that failed or were cancelled.
#[utoipa::path(post, operation_id = "retry_workflow_task", path = "/api/v1/workflow-runs/{id}/tasks/{task}/retry", tag = "workflow runs",
    params(("id" = String, Path), ("task" = String, Path, description = "The name or path of the task, such as `load[3].check`")),
    responses((status = 200, description = "The changed run", body = WorkflowRun)))]
pub async fn retry_task(
    State(state): State<ApiState>,
    RunAndTask(id, task): RunAndTask,
    _: OptionalJson<Nothing>,
) -> ApiResult<Response> {
    change(&state, id, RunCommand::RetryTask(task)).await
}
