//! Whether everything of a run is to end that has not: somebody cancelled it, or a task failed where that ends it.

use super::definition::OnFailure;
use super::graph::Graph;
use super::position::FIRST_INDEX;
use super::run::{Run, RunTask, task_at};
use crate::attempt::Failure;
use crate::state::State;

/// The code of a task that was cancelled because another one failed.
pub const FAIL_FAST: &str = "fail_fast";
/// The code of a task that was cancelled with its run.
pub const RUN_CANCELLED: &str = "run_cancelled";

/// Why everything is to end that has not.
pub(super) struct EndAll {
    pub failure: Failure,
    spare_tolerated: bool,
}

impl EndAll {
    /// Somebody wants the run to end, or a task failed where that ends it.
    pub fn wanted(graph: &Graph, run: &Run, tasks: &[RunTask]) -> Option<Self> {
        if run.progress.cancel_requested {
            let failure = Failure::new(RUN_CANCELLED, "its run was cancelled");
            return Some(Self { failure, spare_tolerated: false });
        }
        if graph.on_failure == OnFailure::Continue {
            return None;
        }
        let ends_the_run = |task: &&RunTask| {
            task.state == State::Failed
                && !graph.comes_after(&task.position)
                && is_item_of_something_open(graph, tasks, task)
        };
        let failed = tasks.iter().find(ends_the_run)?;
        let message = format!("task {} failed", graph.path_of(&failed.position));
        Some(Self { failure: Failure::new(FAIL_FAST, message), spare_tolerated: true })
    }

    /// Whether the task is to end too.
    pub fn concerns(&self, graph: &Graph, task: &RunTask) -> bool {
        if !self.spare_tolerated {
            return true;
        }
        let mut node = Some(task.position.node);
        while let Some(at) = node {
            if graph.node(at).failure_tolerated {
                return false;
            }
            node = graph.scopes[graph.node(at).scope].owner;
        }
        true
    }
}

/// A failed item of something that has ended all the same (skipped, or completed by hand) is history.
fn is_item_of_something_open(graph: &Graph, tasks: &[RunTask], task: &RunTask) -> bool {
    let outermost = task_at(tasks, FIRST_INDEX + graph.outermost(task.position.node));
    task.position.iterations.is_empty() || outermost.is_none_or(|outer| !outer.state.is_terminal())
}
