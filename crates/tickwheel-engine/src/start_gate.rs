//! The gate between a claim and the start of what it took.
//!
//! Each claim passes the gate and keeps it open until its attempts have started. Whoever forbids starts writes that to
//! the store first, then waits at the gate: afterwards nothing that was claimed before is about to start.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// See the module. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct StartGate(Arc<RwLock<()>>);

/// Keeps the gate open until the last clone is dropped.
pub type StartPass = Arc<OwnedRwLockReadGuard<()>>;

impl StartGate {
    /// Passes the gate, on behalf of one claim.
    pub async fn pass(&self) -> StartPass {
        Arc::new(self.0.clone().read_owned().await)
    }

    /// Waits until whatever was claimed before now has started.
    pub async fn wait_for_starts(&self) {
        drop(self.0.write().await);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn whoever_forbids_starts_waits_for_all_that_were_claimed_before() {
        let gate = StartGate::default();
        gate.wait_for_starts().await;
        let pass = gate.pass().await;
        let (first, second) = (pass.clone(), pass);
        let mut waiting = Box::pin(gate.wait_for_starts());
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(second);
        waiting.await;
    }
}
