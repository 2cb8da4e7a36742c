//! The callbacks about a job: listing them, and sending the outcome again.

use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use tickwheel_core::ports::{self, CallbackRecord};
use tickwheel_protocol::{Callback, Code, List};

use super::read::find;
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Id, Nothing, OptionalJson};
use crate::state::ApiState;

/// List the callbacks about a job, with their tries
///
/// Oldest first, up to a hundred.
#[utoipa::path(get, operation_id = "list_job_callbacks", path = "/api/v1/jobs/{id}/callbacks", tag = "jobs", params(("id" = String, Path)),
    responses((status = 200, description = "The callbacks", body = List<Callback>)))]
pub async fn list(State(state): State<ApiState>, Id(id): Id) -> ApiResult<Json<List<Callback>>> {
    find(&state, id).await?;
    let records = state.store.callbacks_of(id).await?;
    Ok(Json(List::complete(records.iter().map(convert::callback).collect())))
}

/// Send the outcome of a job again
///
/// Sends a new callback to the job's `callback_url`, with up to three tries, and answers with that callback. 409 if the
/// job has not ended or has no `callback_url`.
#[utoipa::path(post, operation_id = "resend_job_callback", path = "/api/v1/jobs/{id}/callbacks", tag = "jobs", params(("id" = String, Path)),
    responses((status = 202, description = "The new callback", body = Callback)))]
pub async fn resend(
    State(state): State<ApiState>,
    Id(id): Id,
    _: OptionalJson<Nothing>,
) -> ApiResult<(StatusCode, Json<Callback>)> {
    let job = find(&state, id).await?;
    let callback = ports::Callback::of(&job).ok_or_else(|| {
        let detail = match job.state().is_terminal() {
            true => "the job has no callback_url: there is nobody to tell".to_owned(),
            false => format!("the job is {} and has no outcome yet", job.state()),
        };
        ApiError::new(Code::IllegalState, detail)
    })?;
    let (url, due_at) = (callback.url.clone(), Some(callback.completed_at));
    let id = state.scheduler.send_callback(callback).await?;
    let record = CallbackRecord { id, url, state: job.state(), due_at, tries: Vec::new() };
    Ok((StatusCode::ACCEPTED, Json(convert::callback(&record))))
}
