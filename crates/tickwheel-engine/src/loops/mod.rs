//! The background loops: one file each, all of one shape.
//!
//! - `…Options`: what can be tuned, with its defaults. [`wiring`](crate::wiring) sets what a user may choose.
//! - `run`: waits for a reason to work, calls `run_once`, waits longer while the store fails. It returns only when
//!   everybody who could give it work is gone.
//! - `run_once`: one step. It takes what there is to do, or the time, as an argument, and waits for nobody but the
//!   store. A test steps a loop by hand with it.
//!
//! A loop has an inbox where work is handed to it (`IntakeHandle`, `SettlerHandle`), or the
//! [`announcer`](crate::announcer) wakes it, or it asks the store now and then, or several of these.

pub mod callbacks;
pub mod controls_reader;
pub mod dispatcher;
pub mod end_poller;
pub mod expiry;
pub mod gauges;
pub mod intake;
pub mod log_writer;
pub mod planner;
pub mod progress_writer;
pub mod reaper;
pub mod schedule_runner;
pub mod session_keeper;
pub mod settler;
pub mod vacuum;
pub mod worker_keeper;
pub mod workflow_reconciler;
