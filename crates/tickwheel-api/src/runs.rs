//! Runs of workflows as they are read here: a large one takes room, and of long errors only the beginning is kept.
//!
//! A run comes from the store with all its jobs, each with an error of up to `limits.error_bytes_max`. The overview of a run is no
//! place for them if they are many: the whole text is in the task's own job.

use std::collections::HashSet;

use tickwheel_core::RunId;
use tickwheel_core::workflow::RunTask;

use crate::convert::RunView;
use crate::error::ApiResult;
use crate::memory::RunRoom;
use crate::state::ApiState;

/// The errors of a run's tasks are whole if they have no more bytes than this together;
const ERRORS_BYTES_MAX: usize = 1 << 20;
/// otherwise each is cut to this many.
pub const ERROR_OVERVIEW_BYTES_MAX: usize = 256;

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
    let reading = room.reading().await?;
    let Some((run, mut tasks)) = state.store.read_run(id).await? else { return Ok(None) };
    let shortened = shorten_errors(&mut tasks, ERRORS_BYTES_MAX);
    drop(reading);
    let definition = state.definitions.of_run(&*state.store, &run).await?;
    Ok(Some((RunView::new(definition, run, tasks, shortened, state.now()), room)))
}

/// Cuts the errors if they have more than `bytes_max` together; says which tasks have only the beginning of theirs.
fn shorten_errors(tasks: &mut [RunTask], bytes_max: usize) -> HashSet<u32> {
    let errors = tasks.iter().filter_map(|task| task.error.as_ref());
    if errors.map(|error| error.message.len()).sum::<usize>() <= bytes_max {
        return HashSet::new();
    }
    let mut shortened = HashSet::new();
    for task in tasks {
        let Some(error) = task.error.as_mut() else { continue };
        if error.message.len() > ERROR_OVERVIEW_BYTES_MAX {
            // A new text: the old one would keep its place in memory.
            error.message = beginning(&error.message).to_owned();
            shortened.insert(task.place.index);
        }
    }
    shortened
}

/// As much of an error as an overview shows.
pub fn beginning(message: &str) -> &str {
    &message[..message.floor_char_boundary(ERROR_OVERVIEW_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use tickwheel_core::workflow::Place;
    use tickwheel_core::{Failure, JobId, State, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn task(index: u32, message: Option<&str>) -> RunTask {
        let place: Place = serde_json::from_str(r#"{"node": 0}"#).expect("a place");
        RunTask {
            job_id: JobId::from_uuid(Uuid::from_u128(index.into())),
            place: Place { index, ..place },
            state: State::Failed,
            job_type: "t".into(),
            parents: Default::default(),
            attempt: 1,
            due_at: Timestamp::from_millis(0),
            started_at: None,
            completed_at: None,
            cancel_requested: false,
            error: message.map(|message| Failure::new("failed", message)),
            fan_out: None,
        }
    }

    #[test]
    fn errors_are_whole_until_there_is_too_much_of_them() {
        let long = "ä".repeat(300);
        let mut tasks =
            vec![task(1, Some(&long)), task(2, None), task(3, Some("short")), task(4, Some(&long))];
        assert_eq!(shorten_errors(&mut tasks, 2 * 600 + 5), HashSet::new());
        assert_eq!(tasks[0].error.as_ref().unwrap().message, long);
        assert_eq!(shorten_errors(&mut tasks, 2 * 600 + 4), HashSet::from([1, 4]));
        assert_eq!(tasks[0].error.as_ref().unwrap().message, "ä".repeat(128));
        assert_eq!(tasks[2].error.as_ref().unwrap().message, "short");
    }
}
