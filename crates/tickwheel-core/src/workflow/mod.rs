//! Workflows: graphs of tasks, and how a run of one goes on.
//!
//! ```text
//!   WorkflowSpec ──checked──▶ Graph ──begin──▶ run, jobs
//!                               │
//!        counts in the store release tasks ──▶ … ──▶ a reconcile is requested
//!                               │
//!        review: which tasks are ready, which are stuck, is it over?     (states only)
//!        prepare: conditions, data, fan-out, join                         (results of parents)
//!        command: cancel, retry, skip, complete, by hand
//!                               └──────▶ RunStep, valid for one revision of the run
//! ```
//! A task is a job. Whether its parents are done is counted in the transaction that ends them ([`crate::parents`]);
//! where the counts say enough it starts at that moment, and nobody decides anything. All else is decided here, purely,
//! from what the store knows: after a crash it is decided again.
//!
//! Kept true: no task starts before its rule allows it (I8); a run is over exactly when nothing of it can go on by
//! itself; what completed stays completed.
//!
//! Deliberately not here: carrying a step out, and storing anything.

mod begin;
mod budget;
mod command;
mod condition;
mod data;
mod definition;
mod effective_status;
mod end_all;
mod fan_out;
mod graph;
mod notice;
mod number;
mod path;
mod position;
mod prepare;
mod ranges;
mod reconcile;
mod references;
mod review;
mod run;

#[cfg(test)]
mod tests;

pub use begin::{Beginning, NewJobs, StartRefused, begin};
pub use budget::DataLimits;
pub use command::{CommandRejected, PAUSED_RUNS_MAX, RunCommand, apply_command, room_to_pause};
pub use condition::{BadCondition, Condition};
pub use data::{DataFault, Unresolved};
pub use definition::{
    Definition, Each, ForEach, MAX_ITEMS_DEFAULT, Notify, OnFailure, RunEvent, TaskSpec, TriggerRule, Work,
    Workflow, WorkflowSpec,
};
pub use effective_status::{EffectiveStatus, effective_statuses};
pub use graph::{
    Graph, GraphFault, GraphFaultKind, GraphLimits, Node, NodeEach, NodeWork, SCOPE_AFTER, SCOPE_TOP, Scope,
    Template,
};
pub use notice::RunEventDetails;
pub use path::{BadPath, Path};
pub use position::{FIRST_INDEX, FanOut, Iteration, TaskPosition, TaskRole};
pub use prepare::{PARENT_RESULTS_BYTES_MAX, ParentData, ParentResults, needs_of};
pub use reconcile::{
    ReconcileScope, RunContext, needs_in_order, needs_of_review, reconcile_scope, step_from_counts,
    step_of_review, step_of_tasks,
};
pub use references::ReferenceSource;
pub use review::{Review, review};
pub use run::{
    ReconcileRequest, Run, RunCounts, RunNotice, RunProgress, RunStatus, RunStep, RunTask,
    TASK_ERROR_BYTES_MAX, TASK_ERRORS_BYTES_MAX, TaskChange, TaskEnds, TaskError, beginning, task_at,
};
