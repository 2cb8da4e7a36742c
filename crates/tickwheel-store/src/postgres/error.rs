//! What an error of PostgreSQL or of the way to it means for the caller: certainly not done, or nobody knows.
//!
//! A server that answers with an error has rolled back. A server that dies, or a connection that breaks, while a write
//! is under way may have committed before the answer was lost.

use std::error::Error as _;

use tickwheel_core::ports::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{Severity, SqlState};

use crate::error::{aborted, corrupt, unknown};

/// A read, or a write whose commit was never sent: nothing was changed, whatever went wrong.
pub(super) fn not_done(error: Error) -> StoreError {
    aborted(in_words(&error))
}

/// A write that may have reached its commit.
pub(super) fn write_failed(error: Error) -> StoreError {
    if was_rolled_back(&error) { aborted(in_words(&error)) } else { unknown(in_words(&error)) }
}

/// No connection could be had: nothing was even asked. The last cause says why, in words that whoever starts a server
/// understands; those before it are the pool's and the driver's.
pub(super) fn no_connection(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    let error = error.into();
    let mut cause: &dyn std::error::Error = &*error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let words = cause.to_string();
    let words = match words.as_str() {
        words if words.starts_with("Timeout occurred") => "all connections are in use, or it does not answer",
        words => words.split(" (os error").next().unwrap_or(words),
    };
    aborted(format_args!("no connection to PostgreSQL: {words}"))
}

/// A column does not hold what it should.
pub(super) fn unreadable(error: Error) -> StoreError {
    corrupt("a column", in_words(&error))
}

fn was_rolled_back(error: &Error) -> bool {
    error.as_db_error().is_some_and(|answer| {
        // A server that ends the connection (shutdown, crash of a neighbour) does so at any moment, also right after
        // the commit.
        let ends_connection = matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
        !ends_connection && *answer.code() != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
    })
}

/// The driver's own words leave out the cause.
pub(super) fn in_words(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(answer), _) => format!("{} ({})", answer.message(), answer.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
