//! Reading runs: all of them, one with its tasks, the items of a fan-out.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tickwheel_core::RunId;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::RunQuery;
use tickwheel_core::workflow::ReconcileRequest;
use tickwheel_protocol::{Code, List, RunStatus, RunTask, Span, Status, WorkflowRun};
use utoipa::IntoParams;

use super::no_such_run;
use crate::convert::{self, RunView};
use crate::error::{ApiError, ApiResult};
use crate::extract::Run;
use crate::lists::Gathering;
use crate::memory::{RunRoom, Turn};
use crate::params::{
    Params, item_cursor, page_limit, page_size, parse_item_cursor, parse_run_cursor, run_cursor,
};
use crate::runs;
use crate::state::ApiState;
use crate::streamed::Streamed;
use crate::waiting::Patience;

/// Which runs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// Only runs of this workflow.
    workflow: Option<String>,
    /// Only runs in this state.
    status: Option<RunStatus>,
    /// How many items per page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// List runs, newest first, without their tasks
#[utoipa::path(get, operation_id = "list_workflow_runs", path = "/api/v1/workflow-runs", tag = "workflow runs", params(ListParams),
    responses((status = 200, description = "The runs", body = List<WorkflowRun>)))]
pub async fn list(
    State(state): State<ApiState>,
    Params(params): Params<ListParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let after = params.cursor.as_deref().map(parse_run_cursor).transpose()?;
    let mut page = Gathering::new(page_size(&state, params.limit)?, after);
    while let Some((after, limit)) = page.wanted() {
        let (tenant, workflow) = (DEFAULT_TENANT.into(), params.workflow.clone());
        let status = params.status.map(convert::run_status);
        let found = state.store.list_runs(RunQuery { tenant, workflow, status, after, limit }).await?;
        page.add(found, |run| run.input.as_str().len(), |run| run.id);
    }
    let page = page.finish();
    let items = page.items.into_iter().map(|run| convert::run(&run));
    Ok(Streamed::page(items, page.next.map(run_cursor).as_deref(), turn).into_response())
}

/// How to read a run.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    /// Wait until the run has ended, for up to this long (5 minutes at most). After that the answer is 408.
    #[param(value_type = Option<String>, example = "30s")]
    wait: Option<Span>,
}

/// Get a run with its tasks
#[utoipa::path(get, operation_id = "get_workflow_run", path = "/api/v1/workflow-runs/{id}", tag = "workflow runs",
    params(("id" = String, Path), GetParams),
    responses((status = 200, description = "The run", body = WorkflowRun)))]
pub async fn get(
    State(state): State<ApiState>,
    Run(id): Run,
    Params(params): Params<GetParams>,
) -> ApiResult<Response> {
    if let Some(wait) = params.wait {
        wait_for_end(&state, id, wait).await?;
    }
    let (view, room) = runs::read(&state, id).await?.ok_or_else(no_such_run)?;
    answer(view, room)
}

/// The run as a client reads it, its tasks one by one.
pub(super) fn answer(view: RunView, room: RunRoom) -> ApiResult<Response> {
    let run = view.run()?;
    Ok(Streamed::field_of(&run, "tasks", view.into_overview().map(Ok), room).into_response())
}

async fn wait_for_end(state: &ApiState, id: RunId, wait: Span) -> ApiResult<()> {
    let patience = Patience::of(state, ReconcileRequest::id_of_run(id), "run", wait)?;
    loop {
        let end = patience.listen();
        let run = state.store.get_runs(vec![id]).await?.pop().ok_or_else(no_such_run)?;
        if run.progress.status.is_over() {
            return Ok(());
        }
        patience.wait(end, run.progress.status.as_str()).await?;
    }
}

/// Which items to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ItemsParams {
    /// The fan-out: its name, or its path, such as `load[3].check`. For one of its items that has tasks (`load[3]`),
    /// the answer lists those tasks.
    task: String,
    /// Only items in this state.
    status: Option<Status>,
    /// How many items per page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// List the items of a fan-out, in order
///
/// Empty until the fan-out has started.
#[utoipa::path(get, operation_id = "list_workflow_run_items", path = "/api/v1/workflow-runs/{id}/items", tag = "workflow runs",
    params(("id" = String, Path), ItemsParams),
    responses((status = 200, description = "The items", body = List<RunTask>)))]
pub async fn items(
    State(state): State<ApiState>,
    Run(id): Run,
    Params(params): Params<ItemsParams>,
) -> ApiResult<Response> {
    let limit = page_limit(params.limit)?;
    let first = params.cursor.as_deref().map(parse_item_cursor).transpose()?.unwrap_or(0);
    let (view, room) = runs::read(&state, id).await?.ok_or_else(no_such_run)?;
    let fan_out = view.find(&params.task).ok_or_else(|| ApiError::not_found("task"))?;
    if !view.is_fan_out(fan_out) {
        let detail = format!("task: {:?} is not a fan-out", params.task);
        return Err(ApiError::new(Code::InvalidParameter, detail));
    }
    let answers = view.item_tasks(fan_out, first).map(|(number, item)| (number, view.task_answer(item)));
    let mut wanted = answers.filter(|(_, item)| params.status.is_none_or(|status| item.status == status));
    let items: Vec<RunTask> = wanted.by_ref().take(limit).map(|(_, item)| item).collect();
    let next_cursor = wanted.next().map(|(number, _)| item_cursor(number));
    Ok(Streamed::page(items.into_iter().map(Ok), next_cursor.as_deref(), room).into_response())
}
