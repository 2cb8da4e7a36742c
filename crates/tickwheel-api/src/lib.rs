//! The REST API: HTTP and JSON outside, the scheduler and the store inside.
//!
//! A request is read strictly, checked by the rules of the protocol, turned into the core's terms and handed to the
//! [`Scheduler`](tickwheel_core::ports::Scheduler) if it changes something, or answered from the
//! [`Store`](tickwheel_core::ports::Store) if it only reads. Whatever goes wrong is answered as a problem with a stable
//! code, and a refused request leaves no trace.
//!
//! Deliberately not here: decisions about jobs (the core's), batching and waiting (the engine's), rules about fields
//! (the protocol's). This crate sees the engine and the stores only through the core's ports.

mod blocking;
mod browsers;
mod calculation;
mod conversation;
mod convert;
mod error;
mod extract;
pub mod ics;
mod layers;
mod lists;
mod memory;
pub mod metrics;
mod openapi;
mod params;
mod payloads;
mod permissions;
mod routes;
mod runs;
mod serve;
mod state;
mod streamed;
mod waiting;

pub use browsers::AllowedHosts;
pub use convert::{executed_job, preview_calendar, preview_cron};
pub use memory::Memory;
pub use openapi::openapi;
pub use permissions::{Permissions, RefusedProcess};
pub use routes::router;
pub use serve::{REFUSALS_MAX, serve};
pub use state::ApiState;
