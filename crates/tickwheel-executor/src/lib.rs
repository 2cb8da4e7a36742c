//! Where work is done: the executors that run an attempt, and the sender that tells a job's outcome.
//!
//! Everything that leaves the house goes through [`outbound`], and there through one connector that checks the address
//! it is about to connect to. The invariant: no request reaches an address its [`outbound::AddressGuard`] refuses, and
//! no attempt is sent twice.
//!
//! Deliberately not here: deciding about retries (the core does, from the outcome), waiting for a slot, leases, and
//! anything that reads or writes the store.

mod error;
pub mod executor;
pub mod launcher;
pub mod outbound;
mod wire_time;

pub use error::Error;
