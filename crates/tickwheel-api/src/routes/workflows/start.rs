//! Starting a run of a workflow.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::LOCATION;
use hyper::{HeaderMap, StatusCode};
use tickwheel_core::ports::{Creation, RunRefused};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Code, Problem, StartRun, WorkflowRun};

use super::no_such_workflow;
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Name, OptionalJson};
use crate::routes::jobs::agreed_key;
use crate::state::ApiState;

/// Start a run of the latest version of a workflow
///
/// The body is optional. If the same idempotency key was used for the same workflow and input, the answer is 200 and
/// the first run. Otherwise a used key is answered with 409. The answer does not contain the tasks.
#[utoipa::path(post, operation_id = "start_workflow_run", path = "/api/v1/workflows/{name}/runs", tag = "workflows",
    params(("name" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Same as the field `idempotency_key`")),
    request_body = StartRun,
    responses(
        (status = 201, description = "The run has started", body = WorkflowRun),
        (status = 200, description = "The run was started before, with the same idempotency key", body = WorkflowRun)))]
pub async fn start(
    State(state): State<ApiState>,
    Name(name): Name,
    headers: HeaderMap,
    OptionalJson(mut request): OptionalJson<StartRun>,
) -> ApiResult<Response> {
    request.idempotency_key = agreed_key(&headers, request.idempotency_key.take())?;
    request.validate(&state.limits)?;
    let start = convert::start_run(name, request, state.now())
        .map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    match state.workflows.start(start).await? {
        Creation::Created(run) => {
            let location = format!("/api/v1/workflow-runs/{}", run.id);
            Ok((StatusCode::CREATED, [(LOCATION, location)], Json(convert::run(&run)?)).into_response())
        }
        Creation::Existing(run) => Ok(Json(convert::run(&run)?).into_response()),
        Creation::Conflict(first) => {
            let detail = format!("the idempotency key was used with another body, for run {first}");
            Err(ApiError::new(Code::IdempotencyConflict, detail))
        }
        Creation::Refused(RunRefused::Input(refused)) => {
            Err(Problem::invalid(vec![convert::bad_input(&refused)]).into())
        }
        Creation::Refused(RunRefused::NoSuchWorkflow) => Err(no_such_workflow()),
    }
}
