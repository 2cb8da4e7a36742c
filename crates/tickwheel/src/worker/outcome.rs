//! The end of an attempt, as a worker reports it.

use std::time::Duration;

use serde_json::value::RawValue;
use tickwheel_core::Failure;
use tickwheel_core::settle::Outcome as Ended;
use tickwheel_worker::{CancelReason, Outcome, OutcomeError, ReportedOutcome};

/// What an executor saw, in the words of a report.
pub(super) fn of(ended: Ended) -> Outcome {
    match ended {
        Ended::Completed { result } => {
            let mut outcome = Outcome::new(ReportedOutcome::Completed);
            outcome.result = result.and_then(|text| RawValue::from_string(text.as_str().to_owned()).ok());
            outcome
        }
        Ended::Failed { failure, retryable, retry_after } => failed(failure, retryable, retry_after),
        Ended::TimedOut => failed(timed_out(), true, None),
        Ended::NotSent { reason, again_in } => {
            let mut outcome = Outcome::new(ReportedOutcome::NotStarted);
            outcome.error = Some(error(Failure::new("not_sent", reason)));
            outcome.delay = Some(again_in);
            outcome
        }
        Ended::Snoozed { again_in } => {
            let mut outcome = Outcome::new(ReportedOutcome::Snoozed);
            outcome.delay = Some(again_in);
            outcome
        }
        Ended::Accepted => Outcome::new(ReportedOutcome::Accepted),
        Ended::Cancelled => Outcome::new(ReportedOutcome::Cancelled),
        // An executor does not say these; if it did, the job would have to go elsewhere.
        Ended::Lost { .. } | Ended::Released => Outcome::new(ReportedOutcome::Released),
    }
}

/// The attempt was stopped for this reason.
pub(super) fn stopped(reason: CancelReason) -> Outcome {
    match reason {
        CancelReason::Requested => Outcome::new(ReportedOutcome::Cancelled),
        CancelReason::Deadline => failed(timed_out(), true, None),
        CancelReason::Shutdown | CancelReason::LeaseLost => Outcome::new(ReportedOutcome::Released),
    }
}

fn timed_out() -> Failure {
    Failure::new("timed_out", "no result within the timeout")
}

fn failed(failure: Failure, retryable: bool, retry_after: Option<Duration>) -> Outcome {
    let mut outcome = Outcome::new(ReportedOutcome::Failed);
    outcome.error = Some(error(failure));
    outcome.retryable = retryable;
    outcome.delay = retry_after;
    outcome
}

fn error(failure: Failure) -> OutcomeError {
    OutcomeError { code: Some(failure.code), message: failure.message, class: None, stack: String::new() }
}
