//! One suite a port, run against every implementation.
//!
//! A rule is an async function that panics if the implementation breaks it; a macro stamps every rule as a test of its own, so that
//! the name of a failing test says which promise is broken.

#[allow(missing_docs, reason = "a rule is named after what it checks")]
pub mod store;
