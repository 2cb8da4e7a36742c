//! The retry policy of a job.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document;
use crate::time::Span;

/// How the delay grows from retry to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always the initial delay.
    Fixed,
    /// The initial delay times the number of the retry.
    Linear,
    /// The initial delay, doubled for each further retry.
    Exponential,
}

/// How often and how soon a failed job is tried again. In a request, fields that you leave out have their defaults. An
/// answer contains every field that applies.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many retries follow the first attempt. Default 3, or the length of `delays`.
    #[schema(minimum = 0, maximum = 100)]
    pub max_retries: Option<u32>,
    /// How the delay grows. Default `exponential`. Ignored if `delays` is given.
    pub backoff: Option<Backoff>,
    /// The delay before the first retry. Default 1 s.
    pub initial_delay: Option<Span>,
    /// The longest delay. Default 1 h, or the longest delay elsewhere in this policy if that is longer.
    pub max_delay: Option<Span>,
    /// By which fraction of itself (0 to 1) a delay may be shorter or longer. Default 0.1, or 0 if `delays` is given.
    #[schema(minimum = 0, maximum = 1)]
    pub jitter: Option<f64>,
    /// The delays, in order. The last one repeats.
    #[schema(min_items = 1, max_items = 100)]
    pub delays: Option<Vec<Span>>,
    /// Failures that are not retried: patterns for their code or message, in which `*` matches anything, such as
    /// `timed_out` or `*answered 409*`.
    #[schema(value_type = Option<Vec<document::FailurePattern>>, max_items = 20, example = json!(["timed_out", "*answered 409*"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_retryable: Option<Vec<String>>,
}
