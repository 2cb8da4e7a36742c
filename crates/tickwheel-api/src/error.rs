//! From what went wrong inside to what a client is told.
//!
//! The two differ on purpose: the log gets the cause, the client gets a code, a sentence, and whether asking again is
//! safe.

use std::time::Instant;

use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use tickwheel_core::failure_streak::SharedFailureStreak;
use tickwheel_core::ports::{SchedulerError, StoreError};
use tickwheel_core::schedule::edit::EditRefused;
use tickwheel_core::state::IllegalTransition;
use tickwheel_core::workflow::CommandRejected;
use tickwheel_protocol::problem::{self, Code, Problem};

use crate::convert::bad_range;

/// How soon to come back when the store or the server is not able right now.
const RETRY_AFTER_SECONDS: u64 = 1;

// However many requests fail in the same way, the log says it now and then.
static REFUSED: SharedFailureStreak = SharedFailureStreak::none();
static IN_DOUBT: SharedFailureStreak = SharedFailureStreak::none();

/// A refusal on its way to the client.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.detail)]
pub struct ApiError(pub Problem);

/// What a handler returns.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// A refusal with its code and what happened this time.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Problem::new(code, detail))
    }

    /// There is no such thing.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<IllegalTransition> for ApiError {
    fn from(illegal: IllegalTransition) -> Self {
        Self::new(Code::IllegalState, illegal.to_string())
    }
}

impl From<EditRefused> for ApiError {
    fn from(refused: EditRefused) -> Self {
        match refused {
            // Only after many tries.
            EditRefused::SpecChanged => Self::new(Code::Overloaded, "others keep changing the schedule"),
            EditRefused::BackfillRunning => Self::new(Code::BackfillRunning, refused.to_string()),
            EditRefused::NeverBackfilled => Self::new(Code::NotFound, refused.to_string()),
            EditRefused::NoBackfill(fault) => Problem::invalid(vec![bad_range(fault)]).into(),
        }
    }
}

impl From<CommandRejected> for ApiError {
    fn from(refused: CommandRejected) -> Self {
        let code = match refused {
            CommandRejected::UnknownTask(_) => Code::NotFound,
            CommandRejected::TooManyPaused => Code::TooManyPaused,
            _ => Code::IllegalState,
        };
        Self::new(code, refused.to_string())
    }
}

/// What a client is told of an error. The log says more.
pub fn detail_of(error: &SchedulerError) -> &'static str {
    match error {
        SchedulerError::Store(error) => detail_of_store(error),
        SchedulerError::Overloaded => {
            "more is waiting to be written than the server holds; nothing was changed"
        }
        SchedulerError::ShuttingDown => "the server is shutting down; nothing was changed",
    }
}

const fn detail_of_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::Aborted(_) => "the store is not available; nothing was changed",
        StoreError::Unknown(_) => "the change may or may not have been made; read before you try again",
        StoreError::Corrupt(_) => "stored data could not be read",
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let detail = detail_of_store(&error);
        match error {
            StoreError::Aborted(cause) => {
                if let Some(repeats) = REFUSED.failed(Instant::now()) {
                    tracing::warn!(cause, repeats, "the store refused a request");
                }
                Self::new(Code::StoreUnavailable, detail)
            }
            StoreError::Unknown(cause) => {
                if let Some(repeats) = IN_DOUBT.failed(Instant::now()) {
                    tracing::warn!(cause, repeats, "the store left a request in doubt");
                }
                Self::new(Code::OutcomeUnknown, detail)
            }
            StoreError::Corrupt(cause) => {
                tracing::error!(cause, "the store holds something unreadable");
                Self::new(Code::Internal, detail)
            }
        }
    }
}

impl From<SchedulerError> for ApiError {
    fn from(error: SchedulerError) -> Self {
        match error {
            SchedulerError::Store(error) => error.into(),
            SchedulerError::Overloaded => Self::new(Code::Overloaded, detail_of(&error)),
            SchedulerError::ShuttingDown => Self::new(Code::ShuttingDown, detail_of(&error)),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).expect("a problem has only strings and numbers");
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(problem::CONTENT_TYPE));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
        }
        response
    }
}
