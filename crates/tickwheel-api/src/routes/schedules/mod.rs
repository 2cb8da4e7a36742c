//! Schedules: creating, changing, reading, triggering and backfilling them. A path names a schedule by its id or its
//! name.

mod backfill;
mod change;
mod create;
mod preview;
mod put;
mod read;
mod trigger;

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::ScheduleEdited;
use tickwheel_core::schedule::edit::ScheduleEdit;
use tickwheel_core::schedule::plan::Calendars;
use tickwheel_core::schedule::{Exclusion, Fire, Schedule, ScheduleSpec, Upcoming};
use tickwheel_core::{ScheduleId, Timestamp};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::schedule::LAST_FIRES_MAX;
use tickwheel_protocol::{self as wire, FieldError, Problem};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::calculation::calculated;
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

pub(in crate::routes) use put::{Declared, put_schedule};

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(create::create, read::list))
        .routes(routes!(preview::preview))
        .routes(routes!(read::get, put::put, change::patch, change::delete))
        .routes(routes!(change::pause))
        .routes(routes!(change::resume))
        .routes(routes!(trigger::trigger))
        .routes(routes!(read::next))
        .routes(routes!(read::fires))
        .routes(routes!(backfill::start, backfill::get))
        .routes(routes!(backfill::cancel))
}

/// The schedule with that id or, if there is none, with that name.
async fn find(state: &ApiState, id_or_name: &str) -> ApiResult<Schedule> {
    let store = &state.store;
    if let Ok(id) = id_or_name.parse::<ScheduleId>()
        && let Some(schedule) = store.get_schedules(vec![id]).await?.pop()
    {
        return Ok(schedule);
    }
    store.find_schedule(DEFAULT_TENANT, id_or_name).await?.ok_or_else(no_such_schedule)
}

fn no_such_schedule() -> ApiError {
    ApiError::not_found("schedule")
}

/// Changes a schedule.
pub(in crate::routes) async fn edit(
    state: &ApiState,
    id: ScheduleId,
    edit: ScheduleEdit,
) -> ApiResult<Schedule> {
    done(state.schedules.edit(id, edit).await?)
}

pub(in crate::routes) fn done(edited: ScheduleEdited) -> ApiResult<Schedule> {
    match edited {
        ScheduleEdited::Done(schedule) => Ok(*schedule),
        ScheduleEdited::Refused(refused) => Err(refused.into()),
        ScheduleEdited::NotFound => Err(no_such_schedule()),
    }
}

/// The schedule as a client reads it.
async fn answer(state: &ApiState, schedule: Schedule) -> ApiResult<Json<wire::Schedule>> {
    let mut answers = answers(state, vec![schedule]).await?;
    Ok(Json(answers.pop().expect("one schedule has one answer")))
}

/// Schedules as a client reads them, in order.
async fn answers(state: &ApiState, schedules: Vec<Schedule>) -> ApiResult<Vec<wire::Schedule>> {
    let calendars = calendars_of(state, schedules.iter().map(|schedule| &*schedule.spec)).await?;
    let ids = schedules.iter().map(|schedule| schedule.id).collect();
    let mut fires: HashMap<ScheduleId, Vec<Fire>> = HashMap::new();
    for fire in state.store.latest_fires(ids, LAST_FIRES_MAX).await? {
        fires.entry(fire.schedule_id).or_default().push(fire);
    }
    calculated(move || {
        let of = |schedule: &Schedule| fires.get(&schedule.id).map(Vec::as_slice).unwrap_or_default();
        schedules.iter().map(|schedule| convert::schedule(schedule, &calendars, of(schedule))).collect()
    })
    .await
}

/// The calendars, if any of these schedules needs one.
async fn calendars_of<'a>(
    state: &ApiState,
    mut specs: impl Iterator<Item = &'a ScheduleSpec>,
) -> ApiResult<Calendars> {
    let needs_one = |exclusion: &Exclusion| matches!(exclusion, Exclusion::Calendar(_));
    if !specs.any(|spec| spec.exclude.iter().any(needs_one)) {
        return Ok(Calendars::new());
    }
    let calendars = state.store.list_calendars(DEFAULT_TENANT).await?;
    Ok(calendars.into_iter().map(|calendar| (calendar.name.clone(), calendar)).collect())
}

/// Which firings to look for.
#[derive(Clone, Copy)]
struct Window {
    after: Timestamp,
    count: usize,
}

/// The next firings of a schedule, without those on excluded days.
async fn firings(
    state: &ApiState,
    spec: Arc<ScheduleSpec>,
    window: Window,
) -> ApiResult<Vec<wire::NextFire>> {
    let calendars = calendars_of(state, std::iter::once(&*spec)).await?;
    let timetable = convert::timetable(&spec)?;
    calculated(move || {
        let upcoming = Upcoming::of(&spec, &timetable, &calendars, window.after, None).take(window.count);
        Ok(upcoming.map(|at| convert::next_fire(timetable.zone, at)).collect())
    })
    .await
}

/// A calendar that does not exist would exclude nothing, and nobody would notice a misspelt name before the holiday.
pub(in crate::routes) async fn require_calendars(state: &ApiState, spec: &ScheduleSpec) -> ApiResult<()> {
    let calendars = calendars_of(state, std::iter::once(spec)).await?;
    let unknown = |(index, exclusion): (usize, &Exclusion)| match exclusion {
        Exclusion::Calendar(name) if !calendars.contains_key(name) => Some(FieldError {
            pointer: format!("/exclude/{index}"),
            code: FieldCode::InvalidValue,
            detail: format!("there is no calendar {name:?}"),
        }),
        _ => None,
    };
    let errors: Vec<_> = spec.exclude.iter().enumerate().filter_map(unknown).collect();
    if errors.is_empty() { Ok(()) } else { Err(Problem::invalid(errors).into()) }
}
