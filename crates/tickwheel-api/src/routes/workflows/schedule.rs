//! The schedule of a workflow: an ordinary schedule that follows the definition.

use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_protocol::WorkflowSchedule;
use tickwheel_protocol::workflow::SCHEDULE_PREFIX;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::routes::schedules::{Declared, put_schedule, require_calendars};
use crate::state::ApiState;

/// The requested schedule, if it is valid. The definition itself is valid already. Nothing is stored yet.
pub async fn wanted(state: &ApiState, workflow: &str, request: WorkflowSchedule) -> ApiResult<Declared> {
    let inside = |ApiError(problem)| ApiError(problem.below("/schedule"));
    let paused = request.paused;
    let schedule = convert::new_schedule(request.into_schedule(workflow), state.now())
        .map_err(|problem| inside(ApiError(problem)))?;
    require_calendars(state, &schedule.spec).await.map_err(inside)?;
    Ok(Declared { schedule, paused })
}

/// Makes the workflow's schedule what the definition says. `None` means that it has none.
pub async fn put(state: &ApiState, workflow: &str, wanted: Option<Declared>) -> ApiResult<()> {
    if let Some(declared) = &wanted {
        put_schedule(state, declared).await?;
        return Ok(());
    }
    let name = format!("{SCHEDULE_PREFIX}{workflow}");
    if let Some(old) = state.store.find_schedule(DEFAULT_TENANT, &name).await? {
        state.schedules.delete(old.id).await?;
    }
    Ok(())
}
