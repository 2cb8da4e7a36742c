//! Keeps this node's lease: everything it runs hangs on it.
//!
//! A lease that could not be renewed in time is given up here before anybody else may take it: a new session is opened and the
//! planner learns everything anew. Attempts of the old session go on; whether their ends still count, the store decides.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::machine::Event;
use tickwheel_core::ports::{Clock, Session, Store, StoreResult};
use tickwheel_core::{SessionId, Timestamp};
use uuid::Uuid;

use crate::dispatcher::CurrentSession;
use crate::planner::PlannerHandle;

/// See the module.
pub struct SessionKeeper {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub node: String,
    pub lease: Duration,
    pub current: CurrentSession,
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
        let mut trusted_until = self.clock.now() + self.lease;
        loop {
            tokio::time::sleep(self.lease / 3).await;
            trusted_until = self.run_once(trusted_until).await;
        }
    }

    /// One renewal: until when the lease can be trusted now.
    async fn run_once(&self, trusted_until: Timestamp) -> Timestamp {
        // Measured from before the round trip: a slow answer must not lengthen our trust in the lease.
        let asked_at = self.clock.now();
        let session = *self.current.read().expect("nobody panics while replacing a session id");
        match self.store.renew_session(session, asked_at + self.lease).await {
            Ok(true) => asked_at + self.lease,
            Ok(false) => self.replace(session, trusted_until).await,
            Err(error) => {
                tracing::warn!(%error, %session, "could not renew the lease");
                trusted_until
            }
        }
    }

    async fn replace(&self, lost: SessionId, trusted_until: Timestamp) -> Timestamp {
        let now = self.clock.now();
        match open(&*self.store, &self.node, self.lease, now).await {
            Ok(fresh) => {
                tracing::warn!(%lost, %fresh, "the lease was lost, a new session begins");
                *self.current.write().expect("nobody panics while replacing a session id") = fresh;
                self.planner.tell(Event::StartedOver).await;
                now + self.lease
            }
            Err(error) => {
                tracing::warn!(%error, "could not open a new session");
                trusted_until
            }
        }
    }
}
