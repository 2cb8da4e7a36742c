//! Workflows: graphs of tasks, and how a run of one goes on.
//!
//! ```text
//!   WorkflowSpec ──checked──▶ Graph ──begin──▶ run, jobs
//!                               │
//!        counts in the store let tasks go ──▶ … ──▶ a look is asked for
//!                               │
//!        review: which tasks are ready, which are stuck, is it over?     (states only)
//!        prepare: conditions, data, fan-out, join                         (results of parents)
//!        wish: cancel, retry, skip, complete, by hand
//!                               └──────▶ RunStep, valid for one revision of the run
//! ```
//! A task is a job. Whether its parents are done is counted in the transaction that ends them ([`crate::parents`]); where the counts say enough
//! it starts at that moment, and nobody decides anything. All else is decided here, purely, from what the store knows: after a crash
//! it is decided again.
//!
//! Kept true: no task starts before its rule allows it (I8); a run is over exactly when nothing of it can go on by itself; what
//! completed stays completed.
//!
//! Deliberately not here: carrying a step out, and storing anything.

mod begin;
mod budget;
mod condition;
mod conduct;
mod data;
mod definition;
mod fan_out;
mod graph;
mod notice;
mod number;
mod path;
mod place;
mod prepare;
mod ranges;
mod references;
mod review;
mod run;
mod standing;
mod wish;

#[cfg(test)]
mod tests;

pub use begin::{Beginning, NewJobs, StartRefused, begin};
pub use budget::DataLimits;
pub use condition::{BadCondition, Condition};
pub use conduct::{
    Around, Glance, glance, needs_in_order, needs_of_review, step_at_a_glance, step_of_review, step_of_tasks,
};
pub use data::{DataFault, Unresolved};
pub use definition::{
    Each, ForEach, MAX_ITEMS_DEFAULT, Notify, OnFailure, RunEvent, TaskSpec, TriggerRule, Work, Workflow,
    WorkflowSpec,
};
pub use graph::{
    Graph, GraphFault, GraphFaultKind, GraphLimits, Node, NodeEach, NodeWork, SCOPE_AFTER, SCOPE_TOP, Scope,
    Template,
};
pub use path::{BadPath, Path};
pub use place::{FIRST_INDEX, FanOut, Part, Place, Round};
pub use prepare::{NEEDED_BYTES_MAX, Needed, ParentData, needs_of};
pub use references::ReferenceSource;
pub use review::{Review, review};
pub use run::{
    Look, Run, RunCounts, RunNotice, RunProgress, RunStatus, RunStep, RunTask, TASK_ERROR_BYTES_MAX,
    TASK_ERRORS_BYTES_MAX, TaskChange, TaskEnds, TaskError, beginning, task_at,
};
pub use standing::{Standing, standings};
pub use wish::{HandRefused, PAUSED_RUNS_MAX, Wish, fulfil, room_to_pause};
