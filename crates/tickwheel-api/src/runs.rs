//! Runs of workflows as they are read here: a large one takes room.

use tickwheel_core::RunId;

use crate::convert::RunView;
use crate::error::ApiResult;
use crate::memory::RunRoom;
use crate::state::ApiState;

/// The run as it is now, and the room it takes; `None`: there is no such run.
pub async fn read(state: &ApiState, id: RunId) -> ApiResult<Option<(RunView, RunRoom)>> {
    match room_for(state, id).await? {
        Some(room) => read_into(state, id, room).await,
        None => Ok(None),
    }
}

/// Room for the run, to be taken before anything is changed.
pub async fn room_for(state: &ApiState, id: RunId) -> ApiResult<Option<RunRoom>> {
    match state.store.get_runs(vec![id]).await?.pop() {
        Some(run) => state.memory.run(run.total).await.map(Some),
        None => Ok(None),
    }
}

/// The run as it is now, in this room.
pub async fn read_into(state: &ApiState, id: RunId, room: RunRoom) -> ApiResult<Option<(RunView, RunRoom)>> {
    let Some((run, tasks)) = state.store.read_run(id).await? else { return Ok(None) };
    let definition = state.workflows.definition_of(&run).await?;
    Ok(Some((RunView::new(definition, run, tasks, state.now()), room)))
}
