//! Callbacks about a job: which are still to be sent, and the tries so far.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::Time;

/// A callback about a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Callback {
    /// Its number, which is part of its `webhook-id`.
    pub id: i64,
    /// The event it reports: `job.completed`, `job.failed` or `job.cancelled`.
    pub event: String,
    /// The URL that receives it.
    pub url: String,
    /// `pending`, `delivered` or `given_up`.
    pub status: String,
    /// When the next try is due. `null` when there will be none.
    pub next_try_at: Option<Time>,
    /// The tries so far, oldest first.
    pub tries: Vec<CallbackTry>,
}

/// One try to deliver a callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallbackTry {
    /// The number of the try, beginning with 1.
    pub number: u32,
    /// When it ended.
    pub at: Time,
    /// `delivered`, `failed`, or `given_up` for the last one that failed.
    pub outcome: String,
    /// What the receiver answered, or why there was no answer.
    pub answer: String,
}
