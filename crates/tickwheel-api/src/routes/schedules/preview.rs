//! What a schedule would be and when it would fire, without storing it: by the same steps as creating one.

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

/// Say what a schedule would be and when it would fire
///
/// Takes what creating one takes and refuses what it refuses, except a name that is taken. Nothing is stored.
#[utoipa::path(post, operation_id = "preview_schedule", path = "/api/v1/schedules/preview", tag = "schedules", params(NextParams),
    request_body = SubmitSchedule, responses((status = 200, description = "What it would be", body = SchedulePreview)))]
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
