//! What the core needs from the outside (store, executor, clock) and what it offers to it (the scheduler).
//!
//! Object-safe traits whose methods are domain verbs. Each trait's documentation states what an implementation
//! MUST do; the conformance suites in the testkit check it.

mod attempt_notes;
mod callbacks;
mod clock;
mod controls;
mod creation;
mod executor;
mod jobs;
mod queries;
mod redrives;
mod scheduler;
mod schedules;
mod sessions;
mod store;
mod workers;
mod workflows;

pub use attempt_notes::*;
pub use callbacks::*;
pub use clock::Clock;
pub use controls::*;
pub use creation::{Creatable, Creation, NoSuchSchedule, RunRefused, UnknownParent};
pub use executor::{AttemptContext, CallbackSender, Executor, Undelivered};
pub use jobs::*;
pub use queries::*;
pub use redrives::{Redrive, RedriveProgress, RedriveStatus, RedriveStopped, Redrives};
pub use scheduler::{Heartbeat, QueueSnapshot, ReportOutcome, Scheduler, SchedulerError, SchedulerSnapshot};
pub use schedules::*;
pub use sessions::*;
pub use store::*;
pub use workers::*;
pub use workflows::*;
