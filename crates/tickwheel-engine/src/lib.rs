//! The loops around the core: they perform the effects its machine asks for and tell it what came of them.
//!
//! ```text
//!  Front ──▶ intake ──▶ store          planner ⇄ machine (core)
//!    │          └─learned─▶ planner ──claim──▶ dispatcher ──attempt──▶ executor
//!    └─change, report                               └──outcome──▶ settler ──▶ store, callbacks, waiters
//!  firer ⇄ agenda, plan (core) ──jobs──▶ planner
//!  conductor ⇄ review, prepare (core) ──released tasks──▶ planner
//!  session: our lease      reaper: other people's ended leases      callbacks: outcomes to tell
//! ```
//! Whoever changes something in the store tells the [`announcer`], which alone knows who has to hear of it.
//! One file a loop. [`supervisor`] is the only place that spawns, and knows in which order to stop.
//! Nothing here decides about a job; nothing here is lost when the process dies, because everything is in the store.

mod alarm;
mod announcer;
mod batch;
mod callbacks;
mod clock;
mod conductor;
mod controls;
mod definitions;
mod dispatcher;
mod error;
mod firer;
mod front;
mod gauges;
mod intake;
mod lease;
pub mod metrics;
mod options;
mod payloads;
mod planner;
mod reaper;
mod running;
mod schedules;
mod session;
mod settler;
mod store_watch;
mod supervisor;
mod vacuum;
mod waiters;
mod wake_up;
mod workflows;

pub use clock::SystemClock;
pub use error::Error;
pub use options::EngineOptions;
pub use supervisor::{Engine, EngineParts};
