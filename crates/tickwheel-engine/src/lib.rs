//! The loops around the core: they perform the effects its machine asks for and tell it what came of them.
//!
//! ```text
//!  scheduler service ──▶ intake ──▶ store          planner ⇄ machine (core)
//!    └─change, report                                 └──claim──▶ dispatcher ──attempt──▶ executor
//!                                                                     └──outcome──▶ settler ──▶ store
//!  schedule runner ⇄ schedule timer, plan (core) ──jobs──▶ store
//!  workflow reconciler ⇄ review, prepare (core) ──steps──▶ store
//!  session keeper: our lease     reaper: other people's ended leases     callbacks: outcomes to tell
//!
//!  whoever wrote to the store ──what changed──▶ announcer ──▶ planner, schedule runner, waiting clients, callbacks, …
//! ```
//! One file per loop, in `loops`. `wiring` gives each what it needs, `supervisor` starts them and knows in which
//! order to stop, and `host` is the only place that spawns. Nothing here decides about a job; nothing here is
//! lost when the process dies, because everything is in the store.

mod alarm;
mod announcer;
mod attempt_notes;
mod background;
mod batch;
mod callback_delivery;
mod clock;
mod definitions;
mod error;
mod followers;
mod host;
mod lease;
mod loops;
pub mod metrics;
mod options;
mod payloads;
mod redrive_service;
mod reports;
mod run_stepper;
mod running;
mod schedule_service;
mod schedule_stepper;
mod scheduler_service;
mod start_gate;
mod store_watch;
mod supervisor;
#[cfg(test)]
mod tests;
mod waiters;
mod wake_up;
mod wiring;
mod worker_board;
mod worker_service;
mod workflow_service;

pub use clock::SystemClock;
pub use error::Error;
pub use host::{Host, SimulatedNode, SimulatedTask};
pub use options::EngineOptions;
pub use supervisor::{Engine, EngineParts};
