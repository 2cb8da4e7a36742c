//! Why an engine could not be started.

use tickwheel_core::ports::StoreError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system has no thread to spare.
    #[error("no thread could be started: {0}")]
    Thread(#[from] std::io::Error),
}
