//! How this crate says that something went wrong: always as the port's [`StoreError`], so that the caller learns the
//! one thing it has to know, whether asking again is safe.
//!
//! Which database error means what is decided in each store; here is only what both say in the same words.

use std::fmt::Display;

use tickwheel_core::ports::StoreError;

/// Nothing was changed.
pub(crate) fn aborted(cause: impl Display) -> StoreError {
    StoreError::Aborted(cause.to_string())
}

/// It may or may not have been done.
pub(crate) fn unknown(cause: impl Display) -> StoreError {
    StoreError::Unknown(cause.to_string())
}

/// A stored value that this version cannot have written.
pub(crate) fn corrupt(what: &str, value: impl Display) -> StoreError {
    StoreError::Corrupt(format!("{what}: {value}"))
}
