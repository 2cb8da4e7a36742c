//! Callbacks as people see them: what is still to be told, and what came of it so far.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::Time;

/// A callback about a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Callback {
    /// Its number, part of its `webhook-id`.
    pub id: i64,
    /// What it tells: `job.completed`, `job.failed`, `job.cancelled`.
    pub event: String,
    /// Where to.
    pub url: String,
    /// `pending`, `delivered` or `given_up`.
    pub status: String,
    /// When it is sent next, or was to be; `null` when it is over.
    pub next_try_at: Option<Time>,
    /// The tries so far, the first one first.
    pub tries: Vec<CallbackTry>,
}

/// One try to deliver it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallbackTry {
    /// 1 for the first.
    pub number: u32,
    /// When it ended.
    pub at: Time,
    /// `delivered`, `failed`, or `given_up` for the last that failed.
    pub outcome: String,
    /// What the receiver answered, or why it did not.
    pub answer: String,
}
