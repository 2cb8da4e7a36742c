//! Which call the running code belongs to, for the layer that forwards log events.

use std::sync::Arc;

use crate::ctx::Current;

tokio::task_local! {
    static CURRENT: Option<Arc<Current>>;
}

/// The call that this code belongs to, if it is part of a handler.
pub(crate) fn get() -> Option<Arc<Current>> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// Runs a function as part of a call.
pub(crate) fn within<T>(current: Option<Arc<Current>>, work: impl FnOnce() -> T) -> T {
    CURRENT.sync_scope(current, work)
}

/// Runs a future as part of a call.
pub(crate) async fn scope<F: Future>(current: Arc<Current>, work: F) -> F::Output {
    CURRENT.scope(Some(current), work).await
}
