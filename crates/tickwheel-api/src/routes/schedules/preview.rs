//! Previewing a schedule without storing it, by the same steps as creating one.

use axum::Json;
use axum::extract::State;
use tickwheel_protocol::{SchedulePreview, SubmitSchedule};

use super::create::requested_schedule;
use super::read::NextParams;
use super::{answer, firings};
use crate::error::ApiResult;
use crate::extract::StrictJson;
use crate::params::Params;
use crate::state::ApiState;

/// Preview a schedule and its next firings
///
/// Accepts and rejects the same requests as creating one, except that the name may be taken. Nothing is stored.
#[utoipa::path(post, operation_id = "preview_schedule", path = "/api/v1/schedules/preview", tag = "schedules", params(NextParams),
    request_body = SubmitSchedule, responses((status = 200, description = "The schedule as it would be", body = SchedulePreview)))]
pub async fn preview(
    State(state): State<ApiState>,
    Params(params): Params<NextParams>,
    StrictJson(request): StrictJson<SubmitSchedule>,
) -> ApiResult<Json<SchedulePreview>> {
    let window = params.window(&state)?;
    let schedule = requested_schedule(&state, request).await?;
    let next = firings(&state, schedule.spec.clone(), window).await?;
    let next = next.into_iter().map(|fire| fire.local_time).collect();
    let Json(answered) = answer(&state, schedule).await?;
    Ok(Json(SchedulePreview { schedule: answered.into(), next }))
}
