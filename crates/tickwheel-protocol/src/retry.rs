//! When to try again after a failure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::document;
use crate::time::Span;

/// How the delay grows from one retry to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always the initial delay.
    Fixed,
    /// The initial delay times the number of the retry.
    Linear,
    /// The initial delay, doubled each time.
    Exponential,
}

/// How often and how soon a failed job is tried again. In a request, what is left out has its default; in an answer, all
/// that matters is filled in.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Retries after the first attempt. Default 3, or the length of `delays`.
    #[schema(minimum = 0, maximum = 100)]
    pub max_retries: Option<u32>,
    /// How the delay grows. Default `exponential`; of no meaning beside `delays`.
    pub backoff: Option<Backoff>,
    /// The first delay. Default 1 s.
    pub initial_delay: Option<Span>,
    /// No delay is longer. Default 1 h, or the longest delay given elsewhere in this policy if that is more.
    pub max_delay: Option<Span>,
    /// By which part of itself (0 to 1) a delay may be shorter or longer. Default 0.1, or 0 beside `delays`.
    #[schema(minimum = 0, maximum = 1)]
    pub jitter: Option<f64>,
    /// These delays, in order; the last one repeats.
    #[schema(min_items = 1, max_items = 100)]
    pub delays: Option<Vec<Span>>,
    /// After these failures there is no retry: patterns of their code or of their message, in which `*` stands for anything, such as
    /// `timed_out` or `*answered 409*`.
    #[schema(value_type = Option<Vec<document::FailurePattern>>, max_items = 20, example = json!(["timed_out", "*answered 409*"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_retryable: Option<Vec<String>>,
}
