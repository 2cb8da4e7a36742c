//! Between the words of the wire and the terms of the core. The only place that knows both.

mod answer;
mod cron;
mod order;

pub use answer::{attempt, dead_letter, job, why};
pub use cron::preview_cron;
pub use order::{Submission, edit, failed, new_job, payload, priority, state, timestamp};
