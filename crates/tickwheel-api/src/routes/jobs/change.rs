//! Commands for a job. When the call answers, the change is in force.

use axum::Json;
use axum::extract::State;
use tickwheel_core::JobId;
use tickwheel_core::change::Change;
use tickwheel_core::ports::Changed;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Job, PatchJob};

use super::answer::answer;
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Id, Nothing, OptionalJson, StrictJson};
use crate::state::ApiState;

/// Changes a job and answers with it.
pub async fn change(state: &ApiState, id: JobId, change: Change) -> ApiResult<Json<Job>> {
    match state.scheduler.change(id, change).await? {
        Changed::Done(job) => answer(state, &job).await.map(Json),
        Changed::NotFound => Err(ApiError::not_found("job")),
        Changed::Illegal(illegal) => Err(illegal.into()),
    }
}

/// Change a job that has not started
#[utoipa::path(patch, operation_id = "patch_job", path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path)), request_body = PatchJob,
    responses((status = 200, description = "The changed job", body = Job)))]
pub async fn patch(
    State(state): State<ApiState>,
    Id(id): Id,
    StrictJson(patch): StrictJson<PatchJob>,
) -> ApiResult<Json<Job>> {
    patch.validate(&state.limits)?;
    change(&state, id, Change::Edit(convert::edit(patch))).await
}

macro_rules! simple_changes {
    ($($(#[doc = $doc:literal])+ $method:ident $name:ident $id:literal $path:literal $change:expr;)+) => {$(
        $(#[doc = $doc])+
        #[utoipa::path($method, operation_id = $id, path = $path, tag = "jobs", params(("id" = String, Path)),
            responses((status = 200, description = "The changed job", body = Job)))]
        pub async fn $name(
            State(state): State<ApiState>,
            Id(id): Id,
            _: OptionalJson<Nothing>,
        ) -> ApiResult<Json<Job>> {
            change(&state, id, $change).await
        }
    )+};
}

simple_changes! {
    /// Cancel a job
    ///
    /// Same as `POST …/cancel`. A running job is asked to stop.
    delete delete "delete_job" "/api/v1/jobs/{id}" Change::Cancel;
    /// Cancel a job
    ///
    /// A running job is asked to stop.
    post cancel "cancel_job" "/api/v1/jobs/{id}/cancel" Change::Cancel;
    /// Pause a job until it is resumed
    post pause "pause_job" "/api/v1/jobs/{id}/pause" Change::Pause;
    /// Resume a paused job
    post resume "resume_job" "/api/v1/jobs/{id}/resume" Change::Resume;
    /// Run a job now
    post run "run_job" "/api/v1/jobs/{id}/run" Change::RunNow;
    /// Retry a failed or cancelled job
    post retry "retry_job" "/api/v1/jobs/{id}/retry" Change::Retry { payload: None };
}
