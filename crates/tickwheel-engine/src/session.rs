//! Keeps this node's lease: everything it runs hangs on it.
//!
//! A session that others have ended is replaced by a new one, and the planner learns everything anew. Attempts of the old session go
//! on; whether their ends still count, the store decides. While a lease cannot be renewed nothing new starts once it is over.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::machine::Event;
use tickwheel_core::ports::{Clock, Session, Store, StoreResult};
use tickwheel_core::{SessionId, Timestamp};
use uuid::Uuid;

use crate::lease::Lease;
use crate::planner::PlannerHandle;

/// However much doubt there is, the store is not asked more often.
const RENEWAL_PAUSE: Duration = Duration::from_millis(100);

/// See the module.
pub struct SessionKeeper {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub node: String,
    pub length: Duration,
    pub lease: Arc<Lease>,
    pub planner: PlannerHandle,
}

/// Opens a fresh session.
pub async fn open(store: &dyn Store, node: &str, lease: Duration, now: Timestamp) -> StoreResult<SessionId> {
    let id = SessionId::from_uuid(Uuid::now_v7());
    store.open_session(Session { id, node: node.into(), expires_at: now + lease }).await?;
    Ok(id)
}

impl SessionKeeper {
    /// Renews for ever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(RENEWAL_PAUSE).await;
            let _ = tokio::time::timeout(self.length / 3, self.lease.doubted()).await;
            self.run_once().await;
        }
    }

    async fn run_once(&self) {
        // Measured from before the round trip: a slow answer must not lengthen our trust in the lease.
        let asked_at = self.clock.now();
        let session = self.lease.session();
        match self.store.renew_session(session, asked_at + self.length).await {
            Ok(true) => self.lease.renewed(asked_at + self.length),
            Ok(false) => self.replace(session).await,
            Err(error) => tracing::warn!(%error, %session, "could not renew the lease"),
        }
    }

    async fn replace(&self, lost: SessionId) {
        let asked_at = self.clock.now();
        match open(&*self.store, &self.node, self.length, asked_at).await {
            Ok(fresh) => {
                tracing::warn!(%lost, %fresh, "the lease was lost, a new session begins");
                self.lease.replaced(fresh, asked_at + self.length);
                self.planner.tell(Event::StartedOver).await;
            }
            Err(error) => tracing::warn!(%error, "could not open a new session"),
        }
    }
}
