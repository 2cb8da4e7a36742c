//! Backfills of a schedule: preview, start, read and cancel one. A schedule has one at a time.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use tickwheel_core::schedule::Schedule;
use tickwheel_core::schedule::backfill::BackfillRequest;
use tickwheel_core::schedule::edit::{EditRefused, ScheduleEdit};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Backfill, BackfillPreview, BackfillSchedule};

use super::{calendars_of, edit, find};
use crate::calculation::calculated;
use crate::convert::{self, SurveyedRange};
use crate::error::{ApiError, ApiResult};
use crate::extract::{Name, Nothing, OptionalJson, StrictJson};
use crate::state::ApiState;

/// Backfill a past range of a schedule
///
/// Makes a job for every firing in the range that has none, oldest first, at most `rate` per second. Unless `overlap`
/// is `allow`, the jobs run one after the other. Firings that already have a job get no second one. With `preview`,
/// nothing changes, and the answer says what the backfill would do.
#[utoipa::path(post, operation_id = "backfill_schedule", path = "/api/v1/schedules/{schedule}/backfill", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")), request_body = BackfillSchedule,
    responses(
        (status = 202, description = "The backfill is running", body = Backfill),
        (status = 200, description = "With `preview`: what the backfill would do", body = BackfillPreview)))]
pub async fn start(
    State(state): State<ApiState>,
    Name(key): Name,
    StrictJson(request): StrictJson<BackfillSchedule>,
) -> ApiResult<Response> {
    request.validate(&state.limits)?;
    let backfill = convert::backfill_request(&request, state.now())?;
    let schedule = find(&state, &key).await?;
    if request.preview == Some(true) {
        return Ok(preview(&state, schedule, backfill).await?.into_response());
    }
    let begun = edit(&state, schedule.id, ScheduleEdit::Backfill(backfill)).await?;
    Ok((StatusCode::ACCEPTED, answer(&state, begun).await?).into_response())
}

async fn preview(
    state: &ApiState,
    schedule: Schedule,
    backfill: BackfillRequest,
) -> ApiResult<Json<BackfillPreview>> {
    let calendars = calendars_of(state, std::iter::once(&*schedule.spec)).await?;
    let schedule_id = schedule.id;
    let range = calculated(move || SurveyedRange::of(backfill, schedule, calendars)).await?;
    let (after, until) = range.recorded();
    let ledger = state.store.fires_within(schedule_id, after, until).await?;
    calculated(move || Ok(Json(range.preview(&ledger)))).await
}

/// Get the backfill that is running, or else the last one
///
/// 404 if the schedule never had one.
#[utoipa::path(get, operation_id = "get_backfill", path = "/api/v1/schedules/{schedule}/backfill", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")),
    responses((status = 200, description = "The backfill", body = Backfill)))]
pub async fn get(State(state): State<ApiState>, Name(key): Name) -> ApiResult<Json<Backfill>> {
    let schedule = find(&state, &key).await?;
    answer(&state, schedule).await
}

/// Cancel the backfill that is running
///
/// The jobs it made stay. A backfill that has ended does not change. 404 if the schedule never had one.
#[utoipa::path(post, operation_id = "cancel_backfill", path = "/api/v1/schedules/{schedule}/backfill/cancel", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")),
    responses((status = 200, description = "The cancelled or ended backfill", body = Backfill)))]
pub async fn cancel(
    State(state): State<ApiState>,
    Name(key): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<Json<Backfill>> {
    let schedule = find(&state, &key).await?;
    let cancelled = edit(&state, schedule.id, ScheduleEdit::CancelBackfill).await?;
    answer(&state, cancelled).await
}

/// The schedule's backfill as a client reads it.
async fn answer(state: &ApiState, schedule: Schedule) -> ApiResult<Json<Backfill>> {
    let calendars = calendars_of(state, std::iter::once(&*schedule.spec)).await?;
    calculated(move || {
        let timetable = convert::timetable(&schedule.spec)?;
        let backfill = convert::backfill(&schedule, &timetable, &calendars);
        backfill.map(Json).ok_or_else(|| ApiError::from(EditRefused::NeverBackfilled))
    })
    .await
}
