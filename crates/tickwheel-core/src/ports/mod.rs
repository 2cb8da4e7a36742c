//! What the core needs from the outside (store, executor, clock) and what it offers to it (the scheduler).
//!
//! Object-safe traits whose methods are domain verbs. Each trait's documentation states what an implementation
//! MUST do; the conformance suites in the testkit check it.

mod callbacks;
mod clock;
mod executor;
mod scheduler;
mod schedules;
mod store;
mod workflows;

pub use callbacks::*;
pub use clock::Clock;
pub use executor::{AttemptContext, CallbackSender, Executor, Undelivered};
pub use scheduler::{Heartbeat, QueueSnapshot, ReportOutcome, Scheduler, SchedulerError, SchedulerSnapshot};
pub use schedules::*;
pub use store::*;
pub use workflows::*;
