//! The stores that keep jobs, schedules and runs of workflows: [`sqlite`] for one process on one file, and [`postgres`]
//! for a cluster.
//!
//! Both implement [`tickwheel_core::ports::Store`], [`tickwheel_core::ports::ScheduleStore`] and
//! [`tickwheel_core::ports::WorkflowStore`] with the same tables and the same file names, a verb a file, and pass the
//! same conformance suites. SQL lives here and nowhere else; what is to be written was decided in the core.

mod callback_records;
mod codes;
mod columns;
mod dependency_edges;
mod error;
#[cfg(test)]
mod golden;
mod job_columns;
mod migration;
mod note_columns;
mod schedule_columns;
mod sql_text;
mod task_changes;
mod worker_columns;
mod workflow_columns;

pub mod postgres;
pub mod sqlite;
