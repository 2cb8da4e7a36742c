//! The pure heart of Tickwheel: what a job is, how it may change, when it is due and in which order it goes.
//!
//! Nothing here does I/O, asks a clock, spawns or draws randomness of its own: time and chance come in as arguments, so
//! everything can be tested without sleeping and simulated from a seed. The [`ports`] say what the outside must
//! offer; the crates around this one implement them.
//!
//! Deliberately not here: the JSON of the wire (it lives in the protocol and the API; a payload is opaque text, except
//! to [`workflow`], whose tasks use each other's results), SQL, HTTP, tokio.

pub mod attempt;
pub mod callback;
pub mod catch_panic;
pub mod change;
pub mod claim;
pub mod failure_streak;
pub mod fair_queue;
pub mod id;
pub mod job;
pub mod log;
pub mod machine;
pub mod matching;
pub mod once;
pub mod parents;
pub mod payload;
pub mod ports;
pub mod progress;
pub mod retry;
pub mod schedule;
pub mod settle;
pub mod state;
pub mod time;
pub mod token;
pub mod wheel;
pub mod why;
mod words;
pub mod worker;
pub mod workflow;

pub use attempt::{AttemptOutcome, AttemptRecord, Failure};
pub use id::{JobId, Partition, RouteId, RunId, ScheduleId, SessionId};
pub use job::{Delivery, Job, JobSpec, JsonText, Priority, Target, TargetKind};
pub use payload::Payload;
pub use state::State;
pub use time::Timestamp;
