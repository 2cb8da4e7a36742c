//! The stores that keep jobs and schedules: [`sqlite`] for one process on one file, and [`postgres`] for a cluster.
//!
//! Both implement [`tickwheel_core::ports::Store`] and [`tickwheel_core::ports::ScheduleStore`] with the same tables and the
//! same file names, a verb a file, and pass the same conformance suites. SQL lives here and nowhere else; what is to be
//! written was decided in the core.

mod columns;
mod error;
#[cfg(test)]
mod golden;
mod links;
mod migration;
mod schedule_columns;

pub mod postgres;
pub mod sqlite;
