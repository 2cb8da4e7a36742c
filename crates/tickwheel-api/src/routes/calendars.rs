//! Calendars: named sets of days on which schedules do not fire. A change applies from the next firing on.

use axum::Json;
use axum::extract::State;
use hyper::StatusCode;
use serde::Deserialize;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::schedule::zone::Zone;
use tickwheel_core::schedule::{Calendar as CoreCalendar, calendar::CALENDAR_DAYS_MAX};
use tickwheel_protocol::calendar::CALENDARS_MAX;
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Calendar, CalendarImport, CalendarSummary, FieldError, List, Problem, PutCalendar};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::{CalendarText, Name, Nothing, OptionalJson, StrictJson};
use crate::ics;
use crate::lists::page_after;
use crate::params::{PageParams, Params, calendar_cursor, page_limit, parse_calendar_cursor};
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, put, delete)).routes(routes!(import))
}

/// List calendars by name, without their days
#[utoipa::path(get, operation_id = "list_calendars", path = "/api/v1/calendars", tag = "calendars", params(PageParams),
    responses((status = 200, description = "The calendars", body = List<CalendarSummary>)))]
async fn list(
    State(state): State<ApiState>,
    Params(params): Params<PageParams>,
) -> ApiResult<Json<List<CalendarSummary>>> {
    let limit = page_limit(params.limit)?;
    let after = params.cursor.as_deref().map(parse_calendar_cursor).transpose()?;
    let calendars = state.store.list_calendars(DEFAULT_TENANT).await?;
    let page = page_after(&calendars, after.as_ref(), limit, |calendar| calendar.name.to_string());
    let items = page.items.into_iter().map(convert::calendar_summary).collect();
    Ok(Json(List { items, next_cursor: page.next.as_deref().map(calendar_cursor) }))
}

/// Get a calendar
#[utoipa::path(get, operation_id = "get_calendar", path = "/api/v1/calendars/{name}", tag = "calendars", params(("name" = String, Path)),
    responses((status = 200, description = "The calendar", body = Calendar)))]
async fn get(State(state): State<ApiState>, Name(name): Name) -> ApiResult<Json<Calendar>> {
    let calendars = state.store.list_calendars(DEFAULT_TENANT).await?;
    let calendar = calendars.iter().find(|calendar| *calendar.name == *name);
    calendar.map(|calendar| Json(convert::calendar(calendar))).ok_or_else(no_such_calendar)
}

/// Store a calendar, replacing one of the same name
#[utoipa::path(put, operation_id = "put_calendar", path = "/api/v1/calendars/{name}", tag = "calendars", params(("name" = String, Path)),
    request_body = PutCalendar, responses((status = 200, description = "The calendar is stored", body = Calendar)))]
async fn put(
    State(state): State<ApiState>,
    Name(name): Name,
    StrictJson(request): StrictJson<PutCalendar>,
) -> ApiResult<Json<Calendar>> {
    request.validate(&state.limits)?;
    let calendar = convert::new_calendar(name.into(), &request, state.now())?;
    let known = state.store.list_calendars(DEFAULT_TENANT).await?;
    require_room(&known, &calendar.name)?;
    state.schedules.put_calendar(calendar.clone()).await?;
    Ok(Json(convert::calendar(&calendar)))
}

/// Delete a calendar
///
/// From then on, schedules that refer to it fire on its days.
#[utoipa::path(delete, operation_id = "delete_calendar", path = "/api/v1/calendars/{name}", tag = "calendars", params(("name" = String, Path)),
    responses((status = 204, description = "The calendar is deleted")))]
async fn delete(
    State(state): State<ApiState>,
    Name(name): Name,
    _: OptionalJson<Nothing>,
) -> ApiResult<StatusCode> {
    if state.schedules.delete_calendar(DEFAULT_TENANT, &name).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_calendar())
    }
}

/// Options of an import.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ImportParams {
    /// Remove the days that are not in the file. Default `false`.
    replace: Option<bool>,
}

/// Import an iCalendar file into a calendar
///
/// An all-day event adds all its days, any other event the date on which it starts. Yearly repetition is expanded for
/// ten years. Other repetition is ignored.
#[utoipa::path(post, operation_id = "import_calendar", path = "/api/v1/calendars/{name}/import", tag = "calendars",
    params(("name" = String, Path), ImportParams), request_body(content = String, content_type = "text/calendar"),
    responses((status = 200, description = "The days are imported", body = CalendarImport)))]
async fn import(
    State(state): State<ApiState>,
    Name(name): Name,
    Params(params): Params<ImportParams>,
    CalendarText(text): CalendarText,
) -> ApiResult<Json<CalendarImport>> {
    let this_year = Zone::utc().civil_at(state.now()).date().year();
    let found =
        ics::read(&text, this_year).map_err(|error| refused(FieldCode::Malformed, error.to_string()))?;
    let mut known = state.store.list_calendars(DEFAULT_TENANT).await?;
    require_room(&known, &name)?;
    let before = known.iter().position(|calendar| *calendar.name == *name).map(|at| known.swap_remove(at));
    let mut calendar = match before {
        Some(before) => CoreCalendar { updated_at: state.now(), ..before },
        None => convert::new_calendar(name.clone().into(), &PutCalendar::default(), state.now())?,
    };
    let added = found.days.difference(&calendar.days).count();
    let days = found.days.len();
    if params.replace == Some(true) {
        calendar.days = found.days;
    } else {
        calendar.days.extend(found.days);
    }
    let total = calendar.days.len();
    if total > CALENDAR_DAYS_MAX {
        let detail = format!("the calendar would have {total} days; {CALENDAR_DAYS_MAX} are allowed");
        return Err(refused(FieldCode::TooMany, detail));
    }
    state.schedules.put_calendar(calendar).await?;
    let (events, cancelled, repeats_ignored) = (found.events, found.cancelled, found.repeats_ignored);
    Ok(Json(CalendarImport { name, events, cancelled, repeats_ignored, days, added, total }))
}

/// There must be a limit: each firing of a schedule that refers to a calendar reads all of them.
fn require_room(known: &[CoreCalendar], name: &str) -> ApiResult<()> {
    if known.len() < CALENDARS_MAX || known.iter().any(|calendar| &*calendar.name == name) {
        return Ok(());
    }
    Err(refused(FieldCode::TooMany, format!("there are {CALENDARS_MAX} calendars already")))
}

fn refused(code: FieldCode, detail: String) -> ApiError {
    Problem::invalid(vec![FieldError { pointer: String::new(), code, detail }]).into()
}

fn no_such_calendar() -> ApiError {
    ApiError::not_found("calendar")
}
