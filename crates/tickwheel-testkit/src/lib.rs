//! What every test of Tickwheel shares: the in-memory model of the store, a clock that is set by hand, builders for
//! jobs and schedules, databases on a real server, and the conformance suites of the ports.
//!
//! Only tests depend on this crate; nothing of it is part of the program. It knows the core and nothing else of ours,
//! so that the stores, the engine and the API can all be tested with it.

pub mod clock;
pub mod conformance;
pub mod fixtures;
pub mod graphs;
pub mod model;
#[cfg(test)]
mod naive;
pub mod postgres;

pub use clock::ManualClock;
pub use fixtures::{JobBuilder, ScheduleBuilder, job, schedule};
pub use model::{Fault, Model, ModelStore};
pub use postgres::TestDatabase;
