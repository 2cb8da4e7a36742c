//! What can go wrong between a program and its server, and what the program may do about it.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use thiserror::Error;
use tickwheel_protocol::{Code, FieldError, Problem};
use uuid::Uuid;

/// Why a call did not do what it was asked.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The server rejected the request. [`Error::code`] says why.
    #[error("{}", Explained(problem))]
    Refused {
        /// What it said.
        problem: Box<Problem>,
        /// How long to wait before the next try, if it said so.
        retry_after: Option<Duration>,
    },

    /// Something that is not Tickwheel answered, or a proxy did.
    #[error("unexpected answer {status} from {server}{}{excerpt}", if excerpt.is_empty() { "" } else { ": " })]
    Strange {
        /// Who answered.
        server: String,
        /// With which status.
        status: StatusCode,
        /// The beginning of what it said.
        excerpt: String,
    },

    /// Nobody answered.
    #[error("cannot reach {server}: {cause}")]
    NoConnection {
        /// Who was called.
        server: String,
        /// What went wrong.
        cause: String,
        /// Whether the request may have arrived all the same.
        maybe_sent: bool,
    },

    /// Settings are wrong: all of them, each named by its environment variable or option.
    #[error("{}", .0.join("; "))]
    BadSettings(Vec<String>),

    /// The request cannot be written.
    #[error("{0}")]
    BadRequest(String),

    /// The answer is not what this version expects.
    #[error("{0}")]
    BadAnswer(String),

    /// The job was given up.
    #[error("{0}")]
    JobFailed(Box<JobFailure>),

    /// The job was cancelled.
    #[error("job {id} was cancelled")]
    JobCancelled {
        /// Which job.
        id: Uuid,
    },

    /// It did not end in time. It goes on.
    #[error("{id} has not ended yet")]
    WaitTimeout {
        /// The job or run.
        id: Uuid,
    },
}

/// How a job failed.
#[derive(Clone, Debug)]
pub struct JobFailure {
    /// Which job.
    pub id: Uuid,
    /// Its type.
    pub job_type: String,
    /// The code of its last error, such as `timed_out`, or what the handler chose.
    pub code: String,
    /// What the handler said.
    pub message: String,
    /// How many attempts there were.
    pub attempts: u32,
}

impl fmt::Display for JobFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, job_type, code, message, attempts } = self;
        write!(f, "job {id} ({job_type}) failed after {attempts} attempts: {message} ({code})")
    }
}

/// A problem in one line.
struct Explained<'a>(&'a Problem);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.0;
        let sentence = if problem.detail.is_empty() { &*problem.title } else { problem.detail.as_str() };
        write!(f, "{sentence} ({})", problem.code)?;
        for FieldError { pointer, detail, .. } in problem.errors.iter().filter(|e| !e.pointer.is_empty()) {
            write!(f, "; {pointer}: {detail}")?;
        }
        Ok(())
    }
}

impl Error {
    /// The server rejected the request with this problem.
    pub(crate) fn refused(problem: Problem) -> Self {
        Self::Refused { problem: Box::new(problem), retry_after: None }
    }

    /// Why the server rejected the request, if it did, and if this version knows the code.
    pub fn code(&self) -> Option<Code> {
        self.problem().and_then(|problem| Code::parse(&problem.code))
    }

    /// What the server said when it rejected the request.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// The HTTP status of the answer, if there was one that says no.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { problem, .. } => Some(problem.status),
            Self::Strange { status, .. } => Some(status.as_u16()),
            _ => None,
        }
    }

    /// How long the server asked us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NoConnection { .. }) || matches!(self.status(), Some(429 | 502 | 503 | 504))
    }

    /// Whether the request may have been carried out although this is an error.
    pub fn is_in_doubt(&self) -> bool {
        match self {
            Self::NoConnection { maybe_sent, .. } => *maybe_sent,
            Self::Refused { problem, .. } => problem.code == Code::OutcomeUnknown.as_str(),
            Self::Strange { status, .. } => status.is_server_error(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_protocol::problem::FieldCode;

    use super::*;

    #[test]
    fn a_rejection_is_one_line_with_its_code_and_every_field() {
        let field = |pointer: &str| FieldError {
            pointer: pointer.into(),
            code: FieldCode::TooLong,
            detail: "is too long".into(),
        };
        let error = Error::refused(Problem::invalid(vec![field("/type"), field("/queue")]));
        assert_eq!(
            error.to_string(),
            "2 fields are wrong (validation_failed); /type: is too long; /queue: is too long"
        );
        assert_eq!(error.code(), Some(Code::ValidationFailed));
        assert_eq!(error.status(), Some(422));
        assert!(!error.is_transient());
    }

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        let transient = |code| Error::refused(Problem::new(code, "no")).is_transient();
        assert!(transient(Code::Overloaded) && transient(Code::OutcomeUnknown));
        assert!(!transient(Code::NotFound) && !transient(Code::Internal));
        let lost = |maybe_sent| Error::NoConnection { server: "s".into(), cause: "reset".into(), maybe_sent };
        assert!(lost(true).is_transient() && lost(true).is_in_doubt());
        assert!(lost(false).is_transient() && !lost(false).is_in_doubt());
    }
}
