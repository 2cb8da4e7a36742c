//! How a handler fails ([`JobError`]), and how a worker does ([`Error`]).

use std::backtrace::{Backtrace, BacktraceStatus};
use std::error::Error as StdError;
use std::fmt;
use std::panic::Location;
use std::process::ExitCode;
use std::time::Duration;

use crate::attempt::CancelReason;
use crate::outcome::Outcome;

/// Bytes of the stack that go along with an error.
const STACK_BYTES_MAX: usize = 16 << 10;

/// Why a handler did not return a result. Any error becomes one with `?`; what else it can say are the constructors.
pub struct JobError {
    pub(crate) kind: Kind,
    code: Option<Box<str>>,
    message: Box<str>,
    class: Option<&'static str>,
    /// The error itself, to tell its type.
    source: Option<Box<dyn StdError + Send + Sync>>,
    place: &'static Location<'static>,
    backtrace: Option<Box<Backtrace>>,
    /// What is to be reported as it is.
    pub(crate) outcome: Option<Box<Outcome>>,
}

/// What follows from the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The server decides when to try again.
    Failed,
    /// A retry cannot help.
    NotRetryable,
    /// Try again, but not sooner.
    RetryAfter(Duration),
    /// No failure: not yet.
    Snooze(Duration),
    /// It stopped because it was told to.
    Stopped(CancelReason),
}

impl JobError {
    #[track_caller]
    fn of_kind(kind: Kind, message: String) -> Self {
        let backtrace =
            Some(Backtrace::capture()).filter(|trace| trace.status() == BacktraceStatus::Captured);
        let place = Location::caller();
        let backtrace = backtrace.map(Box::new);
        Self {
            kind,
            code: None,
            message: message.into(),
            class: None,
            source: None,
            place,
            backtrace,
            outcome: None,
        }
    }

    /// A failure in words. The server decides when to try again.
    #[track_caller]
    pub fn new(message: impl fmt::Display) -> Self {
        Self::of_kind(Kind::Failed, message.to_string())
    }

    /// A failure that no retry can help.
    #[track_caller]
    pub fn not_retryable(why: impl fmt::Display) -> Self {
        Self::of_kind(Kind::NotRetryable, why.to_string())
    }

    /// A failure. The job runs again no sooner than after `delay`.
    #[track_caller]
    pub fn retry_after(delay: Duration, why: impl fmt::Display) -> Self {
        Self::of_kind(Kind::RetryAfter(delay), why.to_string())
    }

    /// Not yet: the job runs again after `delay`. That is no failure and uses no retry.
    #[track_caller]
    pub fn snooze(delay: Duration) -> Self {
        Self::of_kind(Kind::Snooze(delay), "snoozed".into())
    }

    /// The handler stops because it was cancelled. [`Ctx::check`](crate::Ctx::check) makes these.
    #[track_caller]
    pub(crate) fn stopped(reason: CancelReason) -> Self {
        Self::of_kind(Kind::Stopped(reason), format!("cancelled: {reason}"))
    }

    /// An executor has decided what is to be reported.
    pub(crate) fn ended(outcome: Outcome) -> Self {
        Self { outcome: Some(Box::new(outcome)), ..Self::new("ended") }
    }

    /// A panic of the handler.
    pub(crate) fn panicked(what: &str) -> Self {
        Self { class: Some("panic"), ..Self::new(what) }.code("panic")
    }

    /// The code that goes with it. Without one it is the type of the error in snake case.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into().into_boxed_str());
        self
    }

    /// Whether it stopped because it was cancelled, and why.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        match self.kind {
            Kind::Stopped(reason) => Some(reason),
            _ => None,
        }
    }

    /// The error that it was made of, if that was an `E`.
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.source.as_ref()?.downcast_ref()
    }

    /// The code as it is reported.
    pub(crate) fn reported_code(&self) -> Option<String> {
        self.code.as_deref().map(str::to_owned).or_else(|| self.class.map(snake_case))
    }

    pub(crate) fn class(&self) -> Option<&'static str> {
        self.class
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Where it happened, and what caused it.
    pub(crate) fn stack(&self) -> String {
        let mut stack = format!("at {}", self.place);
        let mut cause = self.source.as_ref().and_then(|source| source.source());
        while let Some(error) = cause {
            stack.push_str(&format!("\ncaused by: {error}"));
            cause = error.source();
        }
        if let Some(trace) = &self.backtrace {
            stack.push_str(&format!("\n{trace}"));
        }
        cut(&stack, STACK_BYTES_MAX).to_owned()
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for JobError {
    #[track_caller]
    fn from(error: E) -> Self {
        let mut failure = Self::of_kind(Kind::Failed, error.to_string());
        failure.class = Some(class_name(std::any::type_name::<E>()));
        failure.source = Some(Box::new(error));
        failure
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, code, message, class, place, .. } = self;
        write!(f, "{message:?} ({kind:?}, code {code:?}, class {class:?}, at {place})")
    }
}

/// `crate::module::Error<T>` is an `Error`.
fn class_name(path: &'static str) -> &'static str {
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}

/// `BadAddress` becomes `bad_address`, `HTTPError` becomes `http_error`.
pub(crate) fn snake_case(class: &str) -> String {
    let chars: Vec<char> = class.chars().collect();
    let mut words = String::new();
    for (i, c) in chars.iter().enumerate() {
        let after_lower = i > 0 && !chars[i - 1].is_uppercase();
        let before_lower = chars.get(i + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && i > 0 && (after_lower || before_lower) && !words.ends_with('_') {
            words.push('_');
        }
        words.extend(c.to_lowercase());
    }
    words
}

/// At most so many bytes of the text, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Why a worker could not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Options are wrong: all of them, each named by its environment variable or option.
    #[error("{}", .0.join("; "))]
    BadOptions(Vec<String>),

    /// The server does not accept this worker.
    #[error("the server refuses this worker: {0}")]
    Refused(String),

    /// The operating system gave no thread, or no port.
    #[error("{0}")]
    System(String),
}

impl Error {
    /// The exit code that says so: 2 for what somebody has to put right first, else 1.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::BadOptions(_) | Self::Refused(_) => ExitCode::from(2),
            Self::System(_) => ExitCode::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no such mailbox")]
    struct BadAddress(#[source] std::num::ParseIntError);

    fn fails() -> Result<(), JobError> {
        Err(BadAddress("x".parse::<u8>().unwrap_err()))?;
        Ok(())
    }

    #[test]
    fn any_error_becomes_a_failure_with_its_class_code_place_and_causes() {
        let error = fails().unwrap_err();
        assert_eq!(error.kind, Kind::Failed);
        assert_eq!(error.class(), Some("BadAddress"));
        assert_eq!(error.reported_code().as_deref(), Some("bad_address"));
        assert_eq!(error.to_string(), "no such mailbox");
        assert!(error.downcast_ref::<BadAddress>().is_some());
        let stack = error.stack();
        assert!(stack.contains("error.rs:") && stack.contains("caused by: invalid digit"), "{stack}");
    }

    #[test]
    fn a_code_of_ones_own_wins() {
        let error = JobError::not_retryable("gone").code("no_mailbox");
        assert_eq!((error.kind, error.reported_code().as_deref()), (Kind::NotRetryable, Some("no_mailbox")));
    }

    #[test]
    fn classes_are_written_in_snake_case() {
        for (class, code) in
            [("BadAddress", "bad_address"), ("HTTPError", "http_error"), ("Io", "io"), ("A1B", "a1_b")]
        {
            assert_eq!(snake_case(class), code);
        }
        assert_eq!(class_name("a::b::Error<c::D>"), "Error");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("aéé", 2), "a");
        assert_eq!(cut("abc", 9), "abc");
    }
}
