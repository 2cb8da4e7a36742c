//! Reading schedules: one, many, their next firings and their ledger.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{FireQuery, ScheduleQuery};
use tickwheel_protocol::cron::COUNT_RANGE;
use tickwheel_protocol::schedule::NEXT_COUNT_DEFAULT;
use tickwheel_protocol::{Code, Fire, FireOutcome, List, NextFire, Schedule, Time};
use utoipa::IntoParams;

use super::{Window, answer, answers, find, firings};
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::Name;
use crate::lists::Gathering;
use crate::memory::Turn;
use crate::params::{
    Params, fire_cursor, page_limit, page_size, parse_fire_cursor, parse_schedule_cursor, schedule_cursor,
};
use crate::state::ApiState;
use crate::streamed::Streamed;

/// Which schedules to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// Only paused schedules (`true`), or only those that are not (`false`).
    paused: Option<bool>,
    /// How many items per page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// List schedules by name
#[utoipa::path(get, operation_id = "list_schedules", path = "/api/v1/schedules", tag = "schedules", params(ListParams),
    responses((status = 200, description = "The schedules", body = List<Schedule>)))]
pub async fn list(
    State(state): State<ApiState>,
    Params(params): Params<ListParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let after = params.cursor.as_deref().map(parse_schedule_cursor).transpose()?;
    let mut page = Gathering::new(page_size(&state, params.limit)?, after);
    while let Some((after, limit)) = page.wanted() {
        let query =
            ScheduleQuery { tenant: Some(DEFAULT_TENANT.into()), paused: params.paused, after, limit };
        let found = state.store.list_schedules(query).await?;
        page.add(
            found,
            |schedule| schedule.spec.job.payload.as_str().len(),
            |schedule| schedule.name.to_string(),
        );
    }
    let page = page.finish();
    let items = answers(&state, page.items).await?.into_iter().map(Ok);
    Ok(Streamed::page(items, page.next.as_deref().map(schedule_cursor).as_deref(), turn).into_response())
}

/// Get a schedule
#[utoipa::path(get, operation_id = "get_schedule", path = "/api/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule")),
    responses((status = 200, description = "The schedule", body = Schedule)))]
pub async fn get(State(state): State<ApiState>, Name(key): Name) -> ApiResult<Json<Schedule>> {
    let schedule = find(&state, &key).await?;
    answer(&state, schedule).await
}

/// Which firings to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NextParams {
    /// How many, 1 to 1000. Default 10.
    count: Option<u32>,
    /// Only firings after this time. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    after: Option<Time>,
}

impl NextParams {
    pub(super) fn window(&self, state: &ApiState) -> ApiResult<Window> {
        let count = self.count.unwrap_or(NEXT_COUNT_DEFAULT);
        if !COUNT_RANGE.contains(&count) {
            let detail = format!("count: must be from {} to {}", COUNT_RANGE.start(), COUNT_RANGE.end());
            return Err(ApiError::new(Code::InvalidParameter, detail));
        }
        let after = self.after.map_or_else(|| state.now(), convert::timestamp);
        Ok(Window { after, count: count as usize })
    }
}

/// List the next firings of a schedule
///
/// Firings on excluded days are left out. A paused schedule shows the firings it would have. Fewer items than requested
/// mean that there are no more, that a whole year is excluded, or that the search would take too long.
#[utoipa::path(get, operation_id = "next_fires", path = "/api/v1/schedules/{schedule}/next", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule"), NextParams),
    responses((status = 200, description = "The firings", body = List<NextFire>)))]
pub async fn next(
    State(state): State<ApiState>,
    Name(key): Name,
    Params(params): Params<NextParams>,
) -> ApiResult<Json<List<NextFire>>> {
    let window = params.window(&state)?;
    let spec = find(&state, &key).await?.spec;
    Ok(Json(List::complete(firings(&state, spec, window).await?)))
}

/// Which firings to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FiresParams {
    /// Only firings with this outcome.
    outcome: Option<FireOutcome>,
    /// How many items per page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// List the ledger of a schedule, latest firings first
#[utoipa::path(get, operation_id = "list_fires", path = "/api/v1/schedules/{schedule}/fires", tag = "schedules",
    params(("schedule" = String, Path, description = "The id or name of the schedule"), FiresParams),
    responses((status = 200, description = "The firings", body = List<Fire>)))]
pub async fn fires(
    State(state): State<ApiState>,
    Name(key): Name,
    Params(params): Params<FiresParams>,
) -> ApiResult<Json<List<Fire>>> {
    let schedule_id = find(&state, &key).await?.id;
    let query = FireQuery {
        schedule_id,
        outcome: params.outcome.map(convert::fire_outcome),
        before: params.cursor.as_deref().map(parse_fire_cursor).transpose()?,
        limit: page_limit(params.limit)?,
    };
    let page = state.store.list_fires(query).await?;
    let items = page.items.iter().map(convert::fire).collect();
    Ok(Json(List { items, next_cursor: page.next.map(fire_cursor) }))
}
