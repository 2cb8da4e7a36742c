//! Keeps this node's lease: everything it runs hangs on it.
//!
//! A session that others have ended is replaced by a new one, and the planner learns everything anew. Attempts of the old session go
//! on; whether their ends still count, the store decides. While a lease cannot be renewed nothing new is taken once it is over.
//!
//! How long this node believes in its lease, the monotonic clock says; when others may end it, the store's clock says. So it matters to nobody
//! how a node's wall clock is set.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_core::ports::{Clock, Session, Store, StoreResult};
use tickwheel_core::{SessionId, Timestamp};
use uuid::Uuid;

use crate::announcer::Announcer;
use crate::lease::Lease;
use crate::store_watch::StoreWatch;

/// However much doubt there is, the store is not asked more often.
const RENEWAL_PAUSE: Duration = Duration::from_millis(100);

/// See the module.
pub struct SessionKeeper {
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub node: String,
    pub length: Duration,
    pub lease: Arc<Lease>,
    pub announcer: Announcer,
}

/// Opens a fresh session. `now` counts if the store has no clock of its own.
pub async fn open(store: &dyn Store, node: &str, lease: Duration, now: Timestamp) -> StoreResult<SessionId> {
    let id = SessionId::from_uuid(Uuid::now_v7());
    let expires_at = store.now(now).await? + lease;
    store.open_session(Session { id, node: node.into(), expires_at }).await?;
    Ok(id)
}

impl SessionKeeper {
    /// Renews for ever.
    pub async fn run(self) {
        let mut interval = self.length / 3;
        loop {
            tokio::time::sleep(RENEWAL_PAUSE).await;
            let _ = tokio::time::timeout(interval, self.lease.doubted()).await;
            interval = match self.run_once().await {
                Ok(()) => {
                    self.watch.succeeded("renew");
                    self.length / 3
                }
                Err(error) => self.watch.failed("renew", &error).min(self.length / 3),
            };
        }
    }

    async fn run_once(&self) -> StoreResult<()> {
        // Measured from before the round trip: a slow answer must not lengthen our trust in the lease.
        let asked_at = Instant::now();
        let session = self.lease.session();
        let expires_at = self.store.now(self.clock.now()).await? + self.length;
        if self.store.renew_session(session, expires_at).await? {
            self.lease.renewed(asked_at + self.length);
            return Ok(());
        }
        self.replace(session).await
    }

    async fn replace(&self, lost: SessionId) -> StoreResult<()> {
        let asked_at = Instant::now();
        let fresh = open(&*self.store, &self.node, self.length, self.clock.now()).await?;
        tracing::warn!(%lost, %fresh, "the lease was lost, a new session begins");
        self.lease.replaced(fresh, asked_at + self.length);
        self.announcer.session_replaced().await;
        Ok(())
    }
}
