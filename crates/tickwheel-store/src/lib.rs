//! The stores that keep jobs: [`sqlite`] for one process on one file, and [`postgres`] for a cluster.
//!
//! Both implement [`tickwheel_core::ports::Store`] with the same tables and the same file names, a verb a file, and pass the
//! same conformance suite. SQL lives here and nowhere else; what is to be written was decided in the core.

mod columns;
mod error;
#[cfg(test)]
mod golden;
mod migration;

pub mod postgres;
pub mod sqlite;
