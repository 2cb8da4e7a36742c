//! A typed client of a Tickwheel server: submit jobs and wait for them, keep schedules and workflows.
//!
//! The contract of a job is a value that both sides import: a payload type that implements [`JobType`]. Whoever submits
//! never sees the code of the handler, which is in a program built on `tickwheel-worker`.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use serde::{Deserialize, Serialize};
//! use tickwheel_client::{Client, JobOptions, JobType};
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
//! # async fn example() -> Result<(), tickwheel_client::Error> {
//! let client = Client::from_env()?;
//! let email = SendEmail { to: "a@example.com".into(), subject: "Hi".into() };
//! let handle = client.submit(email).delay(Duration::from_secs(1800)).await?;
//! let receipt: Receipt = handle.wait(Duration::from_secs(60)).await?;
//! # let _ = receipt.message_id;
//! # Ok(())
//! # }
//! ```
//!
//! Everything here can be repeated: each submission carries an idempotency key, so a request whose answer was lost is
//! sent again and makes no second job. Deliberately not here: policy. The server decides about retries, order and
//! limits.

mod call;
mod client;
mod error;
mod handle;
mod job_type;
mod lines;
mod repeat;
mod schedules;
mod settings;
mod submit;
pub mod testing;
mod trace;
mod transport;
mod workflows;

pub use call::{Answer, Call};
pub use client::{Client, ClientOptions};
pub use error::{Error, JobFailure};
pub use handle::JobHandle;
pub use job_type::{JobOptions, JobType};
pub use lines::Lines;
pub use repeat::Backoff;
pub use schedules::{NewSchedule, Schedules};
pub use settings::Environment;
pub use submit::{NewJob, Submit};
pub use tickwheel_protocol as protocol;
pub use tickwheel_protocol::workflow::builder::{Task, Workflow, from, from_or};
pub use workflows::{RunHandle, Workflows, task};
