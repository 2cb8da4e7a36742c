//! Storing a workflow definition. When the call answers, it is on disk and its schedule is in force.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::LOCATION;
use serde::Deserialize;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::WorkflowPut;
use tickwheel_core::workflow::{Workflow as CoreWorkflow, WorkflowSpec};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{SubmitWorkflow, Workflow, WorkflowSchedule, strict_json};
use url::form_urlencoded;
use utoipa::IntoParams;

use super::schedule;
use crate::blocking::run_blocking;
use crate::convert;
use crate::error::ApiResult;
use crate::extract::RawJson;
use crate::params::Params;
use crate::routes::schedules::Declared;
use crate::state::ApiState;

/// Options of storing a definition.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CreateParams {
    /// Only say what would be stored, and as which version.
    dry_run: Option<bool>,
}

/// Store a workflow
///
/// If the name exists, this makes the next version, even if the workflow was deleted. If the latest version is the
/// same, nothing changes. Runs that have started keep their version. The schedule of the workflow becomes what the
/// definition says, and is removed if the definition has none.
#[utoipa::path(post, operation_id = "submit_workflow", path = "/api/v1/workflows", tag = "workflows", params(CreateParams),
    request_body = SubmitWorkflow,
    responses(
        (status = 201, description = "The workflow is stored as a new version", body = Workflow),
        (status = 200, description = "The latest version is the same, or it was a dry run", body = Workflow)))]
pub async fn create(
    State(state): State<ApiState>,
    Params(params): Params<CreateParams>,
    RawJson(body): RawJson<true>,
) -> ApiResult<Response> {
    let reader = state.clone();
    // Megabytes of JSON take their time: not on a thread that others wait for.
    let (name, spec, schedule) = run_blocking(move || read_request(&body, &reader)).await??;
    let schedule = match schedule {
        Some(schedule) => Some(schedule::wanted(&state, &name, schedule).await?),
        None => None,
    };
    let workflow = CoreWorkflow {
        tenant: DEFAULT_TENANT.into(),
        name: name.as_str().into(),
        version: 0,
        created_at: state.now(),
        spec: spec.into(),
    };
    if params.dry_run == Some(true) {
        return try_out(&state, workflow).await;
    }
    store(&state, workflow, schedule).await
}

type WorkflowRequest = (String, WorkflowSpec, Option<WorkflowSchedule>);

fn read_request(body: &Bytes, state: &ApiState) -> ApiResult<WorkflowRequest> {
    let request: SubmitWorkflow = strict_json::read(body, state.limits.json_depth_max)?;
    request.validate(&state.limits)?;
    state.permissions.check_workflow(&request)?;
    let (name, schedule) = (request.name.clone(), request.schedule.clone());
    Ok((name, convert::workflow_spec(request, &state.limits)?, schedule))
}

async fn store(
    state: &ApiState,
    mut workflow: CoreWorkflow,
    schedule: Option<Declared>,
) -> ApiResult<Response> {
    let put = state.workflows.put(workflow.clone()).await?;
    schedule::put(state, &workflow.name, schedule).await?;
    match put {
        WorkflowPut::Created(version) => {
            workflow.version = version;
            let name: String = form_urlencoded::byte_serialize(workflow.name.as_bytes()).collect();
            let location = format!("/api/v1/workflows/{}?version={version}", name.replace('+', "%20"));
            let answer = Json(convert::workflow(&workflow)?);
            Ok((StatusCode::CREATED, [(LOCATION, location)], answer).into_response())
        }
        WorkflowPut::Unchanged(version) => {
            let latest = super::find(state, &workflow.name, Some(version)).await?;
            Ok(Json(convert::workflow(&latest)?).into_response())
        }
    }
}

/// The workflow as it would be stored.
async fn try_out(state: &ApiState, workflow: CoreWorkflow) -> ApiResult<Response> {
    let latest = state.store.get_workflow(DEFAULT_TENANT, &workflow.name, None).await?;
    let would_be = match latest {
        Some(latest) if latest.spec == workflow.spec => latest,
        _ => CoreWorkflow { version: next_version(state, &workflow.name).await?, ..workflow },
    };
    Ok(Json(convert::workflow(&would_be)?).into_response())
}

/// Version numbers continue after those of a deleted workflow.
async fn next_version(state: &ApiState, name: &str) -> ApiResult<u32> {
    let versions = state.store.list_workflow_versions(DEFAULT_TENANT, name, None, 1).await?;
    Ok(versions.items.first().map_or(1, |last| last.version + 1))
}
