//! How a command can fail, and which exit code says so: 1 the job or check failed, 2 bad usage or input, 3 no
//! connection. Scripts rely on these.

use std::io;
use std::process::ExitCode;

use http::StatusCode;
use thiserror::Error;
use tickwheel_protocol::{FieldError, Problem};

use crate::config::Problems;
use crate::output::plain;

/// Why a command did not do what it was asked.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The job did not complete, or a check did not hold.
    #[error("{0}")]
    NotGood(String),

    /// There are differences where none were hoped for. They were told as the result.
    #[error("there are differences")]
    Different,

    /// What was asked for makes no sense.
    #[error("{0}")]
    BadInput(String),

    /// The configuration is wrong.
    #[error("{0}")]
    BadConfig(#[from] Problems),

    /// The server said no.
    #[error("{}", explain(.0))]
    Refused(Box<Problem>),

    /// Something that is not Tickwheel answered, or a proxy did.
    #[error("unexpected answer {status} from {server}{}", if .excerpt.is_empty() { String::new() } else { format!(": {}", .excerpt) })]
    Strange {
        /// Who answered.
        server: String,
        /// With which status.
        status: StatusCode,
        /// The beginning of what it said.
        excerpt: String,
    },

    /// Nobody answered.
    #[error(
        "cannot reach {server}: {cause}\nhint: is `tickwheel serve` running there? Choose another one with --server or TICKWHEEL_SERVER"
    )]
    NoConnection {
        /// Who was called.
        server: String,
        /// What went wrong.
        cause: String,
    },

    /// It is about one of several things.
    #[error("{what}: {failure}")]
    About {
        /// Which one.
        what: String,
        /// What went wrong with it.
        failure: Box<CommandError>,
    },

    /// The user was told already.
    #[error("{0}")]
    Told(Box<CommandError>),

    /// Whoever read our output has left.
    #[error("standard output is closed")]
    OutputClosed,

    /// Anything else.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl CommandError {
    /// What to tell the user, if there is anything to tell.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::OutputClosed | Self::Different | Self::Told(_) => None,
            failure => Some(plainly(&failure.to_string())),
        }
    }

    /// The same, and which thing it is about.
    #[must_use]
    pub fn about(self, what: &str, name: &str) -> Self {
        Self::About { what: format!("{what} {}", plain(name)), failure: Box::new(self) }
    }

    /// The exit code that says what happened.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            // `tickwheel jobs list | head` is no failure.
            Self::OutputClosed => 0,
            Self::NotGood(_) | Self::Different | Self::Other(_) => 1,
            Self::BadInput(_) | Self::BadConfig(_) => 2,
            Self::Refused(problem) if problem.status < 500 => 2,
            Self::Strange { status, .. } if status.is_client_error() => 2,
            Self::Refused(_) | Self::Strange { .. } => 1,
            Self::NoConnection { .. } => 3,
            Self::About { failure, .. } | Self::Told(failure) => failure.code(),
        }
    }
}

impl From<tickwheel_client::Error> for CommandError {
    fn from(error: tickwheel_client::Error) -> Self {
        use tickwheel_client::Error;
        match error {
            Error::Refused { problem, .. } => Self::Refused(problem),
            Error::Strange { server, status, excerpt } => {
                Self::Strange { server, status, excerpt: plain(&excerpt) }
            }
            Error::NoConnection { server, cause, .. } => Self::NoConnection { server, cause },
            Error::BadSettings(mistakes) => Self::BadInput(mistakes.join("\n")),
            other => Self::Other(other.into()),
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::Other(error.into()) }
    }
}

/// What the operating system says, without its number.
pub fn said(error: &io::Error) -> String {
    plainly(&error.to_string())
}

/// The text without the numbers of the operating system's errors, such as `(os error 98)`: they say nothing to anybody.
fn plainly(text: &str) -> String {
    let mut pieces = text.split(" (os error ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once(')').map_or("", |(_, rest)| rest))
}

/// The server's problem as a person reads it: the sentence, each bad field, the code to look up.
fn explain(problem: &Problem) -> String {
    let mut text = match problem.errors.as_slice() {
        // Its sentence is the field's, only without saying which.
        [only] => bad_field(only),
        errors => {
            let lines = errors.iter().map(|error| format!("\n  {}", bad_field(error)));
            let sentence = if problem.detail.is_empty() { &*problem.title } else { problem.detail.as_str() };
            std::iter::once(plain(sentence)).chain(lines).collect()
        }
    };
    text.push_str(&format!("\ncode: {} ({})", plain(&problem.code), problem.status));
    text
}

/// A bad field with what is wrong with it.
pub(crate) fn bad_field(error: &FieldError) -> String {
    let pointer = if error.pointer.is_empty() { "the request" } else { error.pointer.as_str() };
    format!("{}: {}", plain(pointer), plain(&error.detail))
}

#[cfg(test)]
mod tests {
    use tickwheel_protocol::Code;
    use tickwheel_protocol::problem::FieldCode;

    use super::*;

    #[test]
    fn the_exit_code_tells_a_script_what_happened() {
        let refused = |code| CommandError::Refused(Box::new(Problem::new(code, "no")));
        assert_eq!(
            refused(Code::NotFound).about("job", "a\u{1b}").to_string(),
            "job a\u{fffd}: no\ncode: not_found (404)"
        );
        let no_connection = CommandError::NoConnection { server: "http://x".into(), cause: "refused".into() };
        for (failure, code) in [
            (CommandError::NotGood("failed".into()), 1),
            (CommandError::Different, 1),
            (CommandError::BadInput("what?".into()), 2),
            (refused(Code::NotFound), 2),
            (refused(Code::StoreUnavailable), 1),
            (refused(Code::NotFound).about("job", "x"), 2),
            (CommandError::Told(Box::new(no_connection)), 3),
            (CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe)), 0),
        ] {
            assert_eq!(failure.code(), code, "{failure:?}");
        }
    }

    #[test]
    fn numbers_of_the_operating_system_are_left_out() {
        assert_eq!(plainly("cannot listen: in use (os error 98)\nhint"), "cannot listen: in use\nhint");
        assert_eq!(plainly("a (os error 1): b (os error 2), c"), "a: b, c");
        assert_eq!(plainly("nothing to leave out (at all)"), "nothing to leave out (at all)");
    }

    #[test]
    fn a_problem_is_told_with_every_field_and_its_code() {
        let field = |pointer: &str| FieldError {
            pointer: pointer.into(),
            code: FieldCode::OutOfRange,
            detail: "must be from 0 to 1".into(),
        };
        let told = |fields| CommandError::Refused(Box::new(Problem::invalid(fields))).message().unwrap();
        assert_eq!(
            told(vec![field("/retry/jitter")]),
            "/retry/jitter: must be from 0 to 1\ncode: validation_failed (422)"
        );
        assert_eq!(
            told(vec![field("/a"), field("/b")]),
            "2 fields are wrong\n  /a: must be from 0 to 1\n  /b: must be from 0 to 1\ncode: validation_failed (422)"
        );
    }
}
