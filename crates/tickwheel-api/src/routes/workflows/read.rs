//! Reading workflows: all of them, one, its versions, and a diagram of it.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{Page, WorkflowQuery};
use tickwheel_core::workflow::Workflow as CoreWorkflow;
use tickwheel_protocol::workflow_graph::{dot, mermaid};
use tickwheel_protocol::{List, Workflow, WorkflowSummary};
use utoipa::{IntoParams, ToSchema};

use super::{find, no_such_workflow};
use crate::convert;
use crate::error::ApiResult;
use crate::extract::Name;
use crate::lists::{Gathering, PageSize};
use crate::memory::Turn;
use crate::params::{
    PageParams, Params, page_size, parse_version_cursor, parse_workflow_cursor, version_cursor,
    workflow_cursor,
};
use crate::state::ApiState;
use crate::streamed::Streamed;

/// List workflows by name, each in its latest version
#[utoipa::path(get, operation_id = "list_workflows", path = "/api/v1/workflows", tag = "workflows", params(PageParams),
    responses((status = 200, description = "The workflows", body = List<WorkflowSummary>)))]
pub async fn list(
    State(state): State<ApiState>,
    Params(params): Params<PageParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let after = params.cursor.as_deref().map(parse_workflow_cursor).transpose()?;
    let mut page = Gathering::new(definitions_at_once(page_size(&state, params.limit)?), after);
    while let Some((after, limit)) = page.wanted() {
        let query = WorkflowQuery { tenant: DEFAULT_TENANT.into(), after, limit };
        let found = summaries(state.store.list_workflows(query).await?)?;
        page.add(found, |_| 0, |workflow| workflow.name.clone());
    }
    let page = page.finish();
    let items = page.items.into_iter().map(Ok);
    Ok(Streamed::page(items, page.next.as_deref().map(workflow_cursor).as_deref(), turn).into_response())
}

/// Which version.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    /// The version. Default: the latest.
    version: Option<u32>,
}

/// Get a workflow with its definition
///
/// A deleted workflow has no latest version, but each of its versions can still be read.
#[utoipa::path(get, operation_id = "get_workflow", path = "/api/v1/workflows/{name}", tag = "workflows",
    params(("name" = String, Path), GetParams),
    responses((status = 200, description = "The workflow", body = Workflow)))]
pub async fn get(
    State(state): State<ApiState>,
    Name(name): Name,
    Params(params): Params<GetParams>,
) -> ApiResult<Response> {
    let workflow = find(&state, &name, params.version).await?;
    state.memory.document(&convert::workflow(&workflow)?)
}

/// List the versions of a workflow, latest first, even of a deleted one
#[utoipa::path(get, operation_id = "list_workflow_versions", path = "/api/v1/workflows/{name}/versions", tag = "workflows",
    params(("name" = String, Path), PageParams),
    responses((status = 200, description = "The versions", body = List<WorkflowSummary>)))]
pub async fn versions(
    State(state): State<ApiState>,
    Name(name): Name,
    Params(params): Params<PageParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let before = params.cursor.as_deref().map(parse_version_cursor).transpose()?;
    let mut page = Gathering::new(definitions_at_once(page_size(&state, params.limit)?), before);
    while let Some((before, limit)) = page.wanted() {
        let found = state.store.list_workflow_versions(DEFAULT_TENANT, &name, before, limit).await?;
        page.add(summaries(found)?, |_| 0, |workflow| workflow.version);
    }
    let page = page.finish();
    if page.items.is_empty() && before.is_none() {
        return Err(no_such_workflow());
    }
    let items = page.items.into_iter().map(Ok);
    Ok(Streamed::page(items, page.next.map(version_cursor).as_deref(), turn).into_response())
}

/// A definition may be as large as a batch, and a list shows little of it: few are read at once, and then dropped.
const fn definitions_at_once(size: PageSize) -> PageSize {
    PageSize { step: 4, ..size }
}

fn summaries<C>(page: Page<CoreWorkflow, C>) -> ApiResult<Page<WorkflowSummary, C>> {
    let items = page.items.iter().map(convert::workflow_summary).collect::<ApiResult<_>>()?;
    Ok(Page { items, next: page.next })
}

/// The language of a diagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphFormat {
    /// A Mermaid flowchart.
    #[default]
    Mermaid,
    /// A Graphviz graph.
    Dot,
}

/// How to draw a workflow.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GraphParams {
    /// The language. Default `mermaid`.
    #[param(inline)]
    format: Option<GraphFormat>,
    /// The version. Default: the latest.
    version: Option<u32>,
}

/// Draw a workflow as a diagram, in text form
#[utoipa::path(get, operation_id = "draw_workflow", path = "/api/v1/workflows/{name}/graph", tag = "workflows",
    params(("name" = String, Path), GraphParams),
    responses((status = 200, description = "The diagram", body = String, content_type = "text/plain")))]
pub async fn graph(
    State(state): State<ApiState>,
    Name(name): Name,
    Params(params): Params<GraphParams>,
) -> ApiResult<String> {
    let workflow = find(&state, &name, params.version).await?;
    let definition = convert::workflow(&workflow)?.definition;
    Ok(match params.format.unwrap_or_default() {
        GraphFormat::Mermaid => mermaid(&definition),
        GraphFormat::Dot => dot(&definition),
    })
}
