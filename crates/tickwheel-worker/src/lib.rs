//! Workers for Tickwheel: typed handlers for jobs.
//!
//! A handler is a plain async function: payload first, context second. The contract is the payload's type, which the
//! program that submits jobs imports as well (see `tickwheel-client`).
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use serde::{Deserialize, Serialize};
//! use tickwheel_worker::{Client, Ctx, JobError, JobOptions, JobType, Worker};
//!
//! #[derive(Serialize, Deserialize)]
//! struct SendEmail {
//!     to: String,
//!     subject: String,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Receipt {
//!     message_id: String,
//! }
//!
//! impl JobType for SendEmail {
//!     const NAME: &'static str = "send_email";
//!     type Output = Receipt;
//!     fn options() -> JobOptions {
//!         JobOptions::default().queue("mail").max_retries(5).timeout(Duration::from_secs(30))
//!     }
//! }
//!
//! async fn deliver(email: SendEmail, ctx: Ctx) -> Result<Receipt, JobError> {
//!     ctx.progress(10, "rendering");
//!     if ctx.time_left() < Duration::from_secs(5) {
//!         return Err(JobError::retry_after(Duration::from_secs(60), "too little time left"));
//!     }
//!     ctx.heartbeat().await?; // before what cannot be undone: is it still ours?
//!     let message_id = ctx.once("smtp", |key| send(&email, key)).await?;
//!     Ok(Receipt { message_id })
//! }
//! # async fn send(_: &SendEmail, key: String) -> Result<String, std::io::Error> { Ok(key) }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     Worker::new(Client::from_env()?).name("mailer").queue("mail").capacity(20).handle(deliver).run().await?;
//!     Ok(())
//! }
//! ```
//!
//! Heartbeats, cancels, deadlines, logs and the drain at the end are the library's work: no handler has to call
//! anything to keep its job. Deliberately not here: policy. The server decides about retries, limits, order and time.

mod attempt;
mod ctx;
mod current;
mod error;
mod handler;
mod io;
mod log_buffer;
mod log_layer;
mod middleware;
mod once;
mod options;
mod outcome;
mod session;
mod supervise;
mod telemetry;
pub mod testing;
mod worker;

pub use attempt::CancelReason;
pub use ctx::{Ctx, JobInfo};
pub use error::{Error, JobError};
pub use handler::{BatchOptions, HandlerOptions, OnLeaseLost};
pub use log_layer::{LogLayer, log_layer};
pub use middleware::{Next, Output};
pub use once::{InDoubt, OnceOptions};
pub use outcome::{Outcome, OutcomeError};
pub use session::Stats;
pub use tickwheel_client::{self as client, Client, JobOptions, JobType};
pub use tickwheel_protocol::attempt::OnceScope;
pub use tickwheel_protocol::worker::{Label, LogLevel};
pub use tickwheel_protocol::{ExecutorKind, Labels, ReportedOutcome};
pub use worker::{StatsHandle, Worker};
