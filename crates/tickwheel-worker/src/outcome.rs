//! What an attempt comes to: the handler's result or error, in the words of a report.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickwheel_protocol::attempt::{CodedError, ReportedError};
use tickwheel_protocol::{AttemptReport, ReportedOutcome, Span};

use crate::attempt::CancelReason;
use crate::error::{JobError, Kind, cut};

const MESSAGE_BYTES_MAX: usize = 16 << 10;
const NAME_CHARS_MAX: usize = 255;

/// How an attempt ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// In one word.
    pub status: ReportedOutcome,
    /// The result of a completed one.
    pub result: Option<Box<RawValue>>,
    /// Why one failed.
    pub error: Option<OutcomeError>,
    /// Whether a retry could help one that failed.
    pub retryable: bool,
    /// How long to wait before the job runs again.
    pub delay: Option<Duration>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeError {
    /// The handler's own code, or the type of its error in snake case.
    pub code: Option<String>,
    /// What happened.
    pub message: String,
    /// The type of the error.
    pub class: Option<String>,
    /// Where it happened, and what caused it.
    pub stack: String,
}

/// What decides about errors beside the errors themselves.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub not_retryable: &'a [NotRetryable],
    pub result_bytes_max: usize,
}

/// A type of errors that no retry helps.
#[derive(Clone, Copy)]
pub(crate) struct NotRetryable {
    pub is: fn(&JobError) -> bool,
}

impl Outcome {
    /// An end without a result, an error or a delay.
    pub fn new(status: ReportedOutcome) -> Self {
        Self { status, result: None, error: None, retryable: true, delay: None }
    }

    /// The result as a `T`. `None` if there is none, or if it is something else.
    pub fn result_as<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.result.as_ref()?.get()).ok()
    }

    /// What the handler's end comes to.
    pub(crate) fn of(ended: Result<Box<RawValue>, JobError>, rules: Rules<'_>) -> Self {
        match ended {
            Ok(result) if result.get().len() > rules.result_bytes_max => {
                let (bytes, max) = (result.get().len(), rules.result_bytes_max);
                let error = JobError::not_retryable(format!("the result has {bytes} bytes, more than {max}"));
                Self::failed(&error.code("result_too_large"), false, None)
            }
            Ok(result) => Self { result: Some(result), ..Self::new(ReportedOutcome::Completed) },
            Err(error) => Self::of_error(&error, rules),
        }
    }

    fn of_error(error: &JobError, rules: Rules<'_>) -> Self {
        if let Some(outcome) = &error.outcome {
            return outcome.as_ref().clone();
        }
        let is_listed = rules.not_retryable.iter().any(|listed| (listed.is)(error));
        match error.kind {
            Kind::Failed => Self::failed(error, !is_listed, None),
            Kind::NotRetryable => Self::failed(error, false, None),
            Kind::RetryAfter(delay) => Self::failed(error, !is_listed, Some(delay)),
            Kind::Snooze(delay) => Self { delay: Some(delay), ..Self::new(ReportedOutcome::Snoozed) },
            Kind::Stopped(reason) => Self::stopped(reason),
        }
    }

    /// A handler that stopped, or was stopped, because it was cancelled.
    pub(crate) fn stopped(reason: CancelReason) -> Self {
        match reason {
            CancelReason::Requested => Self::new(ReportedOutcome::Cancelled),
            CancelReason::Deadline => Self::failed(
                &JobError::new("it did not end before its deadline").code("timed_out"),
                true,
                None,
            ),
            CancelReason::Shutdown | CancelReason::LeaseLost => Self::released(),
        }
    }

    pub(crate) fn released() -> Self {
        Self::new(ReportedOutcome::Released)
    }

    fn failed(error: &JobError, retryable: bool, delay: Option<Duration>) -> Self {
        let name = |text: String| text.chars().take(NAME_CHARS_MAX).collect::<String>();
        let error = OutcomeError {
            code: error.reported_code().map(name).filter(|code| !code.is_empty()),
            message: cut(error.message(), MESSAGE_BYTES_MAX).to_owned(),
            class: error.class().map(|class| name(class.to_owned())),
            stack: error.stack(),
        };
        Self { error: Some(error), retryable, delay, ..Self::new(ReportedOutcome::Failed) }
    }

    /// As it is reported.
    pub(crate) fn into_report(self, token: String, ran: Option<Duration>) -> AttemptReport {
        let is_failed = self.status == ReportedOutcome::Failed;
        let error = self.error.map(|error| {
            ReportedError::Coded(CodedError {
                code: error.code,
                message: error.message,
                class: error.class,
                stack: Some(error.stack).filter(|stack| !stack.is_empty()),
            })
        });
        AttemptReport {
            token,
            outcome: self.status,
            result: self.result,
            error,
            retryable: is_failed.then_some(self.retryable),
            delay: self.delay.map(span),
            ran: ran.map(span),
            logs: None,
        }
    }
}

/// To the millisecond, never shorter.
fn span(duration: Duration) -> Span {
    Span::from_millis(u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    const RULES: Rules<'_> = Rules { not_retryable: &[], result_bytes_max: 10 };

    #[test]
    fn a_result_of_just_the_limit_is_one_and_a_byte_more_is_not() {
        let result = |letters: usize| Outcome::of(Ok(to_raw_value(&"x".repeat(letters)).unwrap()), RULES);
        assert_eq!(result(8).status, ReportedOutcome::Completed);
        let over = result(9);
        assert_eq!((over.status, over.retryable), (ReportedOutcome::Failed, false));
        assert_eq!(over.error.unwrap().code.as_deref(), Some("result_too_large"));
    }

    #[test]
    fn one_that_stops_is_reported_by_the_reason() {
        let of = |reason| Outcome::of(Err(JobError::stopped(reason)), RULES);
        assert_eq!(of(CancelReason::Requested).status, ReportedOutcome::Cancelled);
        assert_eq!(of(CancelReason::Shutdown).status, ReportedOutcome::Released);
        assert_eq!(of(CancelReason::LeaseLost).status, ReportedOutcome::Released);
        let late = of(CancelReason::Deadline);
        assert_eq!((late.status, late.retryable), (ReportedOutcome::Failed, true));
        assert_eq!(late.error.unwrap().code.as_deref(), Some("timed_out"));
    }

    #[test]
    fn delays_are_facts_for_the_server() {
        let minute = Duration::from_secs(60);
        let retry = Outcome::of(Err(JobError::retry_after(minute, "later")), RULES);
        assert_eq!((retry.status, retry.delay), (ReportedOutcome::Failed, Some(minute)));
        let snooze = Outcome::of(Err(JobError::snooze(minute)), RULES);
        assert_eq!(
            (snooze.status, snooze.delay, snooze.error),
            (ReportedOutcome::Snoozed, Some(minute), None)
        );
    }
}
