//! What can go wrong on the way to a target, in the terms a job's owner sees.
//!
//! Each variant has a stable code and says whether trying again could help. The messages name what the owner wrote (the
//! host), never what a name resolved to: a tenant must not learn the operator's internal addresses from its failures.

use std::time::Duration;

use tickwheel_core::Failure;

/// Why a request was not sent, or got no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The signing secret cannot be used.
    #[error("signing secret: {0}")]
    InvalidSecret(&'static str),
    /// This machine could not even begin, for want of something of its own: nothing was sent, and the target has
    /// nothing to do with it.
    #[error("nothing could be sent from here: {0}")]
    NotSent(String),
    /// The target as written cannot be called by anybody.
    #[error("{0}")]
    InvalidTarget(String),
    /// The target is at an address that the guard refuses.
    #[error("{host} is at a loopback, private or reserved address, which targets may not reach")]
    TargetForbidden {
        /// The host as written.
        host: String,
    },
    /// No connection came about.
    #[error("cannot connect to {host}: {reason}")]
    ConnectFailed {
        /// The host as written.
        host: String,
        /// What the network said.
        reason: String,
    },
    /// No connection came about in time.
    #[error("no connection to {host} within {} ms", .within.as_millis())]
    ConnectTimedOut {
        /// The host as written.
        host: String,
        /// How long was waited.
        within: Duration,
    },
    /// The connection came about, the TLS session on it did not.
    #[error("no TLS session: {0}")]
    TlsFailed(String),
    /// The connection ended before the answer was complete.
    #[error("the connection was lost before the answer was complete: {0}")]
    ConnectionLost(String),
    /// What came back is not HTTP.
    #[error("the answer is not valid HTTP: {0}")]
    ResponseInvalid(String),
}

impl Error {
    /// The stable code of a failure with this cause.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidSecret(_) => "invalid_secret",
            Self::NotSent(_) => "not_sent",
            Self::InvalidTarget(_) => "invalid_target",
            Self::TargetForbidden { .. } => "target_forbidden",
            Self::ConnectFailed { .. } | Self::ConnectTimedOut { .. } => "connect_failed",
            Self::TlsFailed(_) => "tls_failed",
            Self::ConnectionLost(_) => "connection_lost",
            Self::ResponseInvalid(_) => "response_invalid",
        }
    }

    /// Whether trying again later could help.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::InvalidSecret(_) | Self::InvalidTarget(_) | Self::TargetForbidden { .. } => false,
            Self::NotSent(_)
            | Self::ConnectFailed { .. }
            | Self::ConnectTimedOut { .. }
            | Self::TlsFailed(_)
            | Self::ConnectionLost(_)
            | Self::ResponseInvalid(_) => true,
        }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
