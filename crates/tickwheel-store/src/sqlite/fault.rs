//! What can go wrong inside a verb, and what it means to the caller.
//!
//! A verb that fails is rolled back before its caller hears of it, so every database error means "certainly aborted".
//! The one exception, a writer that vanished without an answer, is known only to [`super::writer`].

use rusqlite::ErrorCode;
use tickwheel_core::ports::StoreError;

use crate::error::aborted;

/// The result of a verb.
pub(super) type Verb<T> = Result<T, Fault>;

/// Why a verb failed: `?` takes both what SQLite says and what the decoding says.
#[derive(Debug)]
pub(super) enum Fault {
    Database(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<rusqlite::types::FromSqlError> for Fault {
    fn from(error: rusqlite::types::FromSqlError) -> Self {
        Self::Database(error.into())
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Store(error) => error,
            Fault::Database(error) if is_unreadable(&error) => Self::Corrupt(error.to_string()),
            Fault::Database(error) => aborted(error),
        }
    }
}

fn is_unreadable(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    match error {
        E::FromSqlConversionFailure(..) | E::IntegralValueOutOfRange(..) | E::InvalidColumnType(..) => true,
        E::SqliteFailure(cause, _) => {
            matches!(cause.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        }
        _ => false,
    }
}
