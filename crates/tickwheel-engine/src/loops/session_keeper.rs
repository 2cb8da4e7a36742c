//! Keeps this node's lease: everything it runs hangs on it.
//!
//! A session that others have ended is replaced by a new one, and the planner learns everything anew. Attempts of the
//! old session go on; whether their ends still count, the store decides. While a lease cannot be renewed nothing new is
//! taken once it is over.
//!
//! How long this node believes in its lease, the monotonic clock says; when others may end it, the store's clock says.
//! So it matters to nobody how a node's wall clock is set.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{Clock, Session, SessionStore, StoreResult};
use tickwheel_core::{SessionId, Timestamp};
use tokio::time::Instant;

use crate::announcer::Announcer;
use crate::host::Host;
use crate::lease::Lease;
use crate::store_watch::StoreWatch;

/// How the loop behaves.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// A name for people, shown with the session.
    pub node: String,
    /// How long the lease lasts. A third of it passes between two renewals.
    pub lease: Duration,
    /// However many ask for a renewal, the store is not asked more often.
    pub renewal_pause: Duration,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            node: "tickwheel".into(),
            lease: Duration::from_secs(15),
            renewal_pause: Duration::from_millis(100),
        }
    }
}

/// See the module.
pub struct SessionKeeper {
    pub options: SessionOptions,
    pub host: Host,
    pub store: Arc<dyn SessionStore>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    pub lease: Arc<Lease>,
    pub announcer: Announcer,
}

/// Opens a fresh session. `now` counts if the store has no clock of its own.
pub async fn open(
    host: &Host,
    store: &dyn SessionStore,
    node: &str,
    lease: Duration,
    now: Timestamp,
) -> StoreResult<SessionId> {
    let id = SessionId::from_uuid(host.fresh_uuid());
    let expires_at = store.now(now).await? + lease;
    store.open_session(Session { id, node: node.into(), expires_at }).await?;
    Ok(id)
}

impl SessionKeeper {
    /// Renews for ever.
    pub async fn run(self) {
        let renewal_interval = self.options.lease / 3;
        let mut interval = renewal_interval;
        loop {
            tokio::time::sleep(self.options.renewal_pause).await;
            let _ = tokio::time::timeout(interval, self.lease.renewal_requested()).await;
            interval = match self.run_once(self.clock.now()).await {
                Ok(()) => {
                    self.watch.succeeded("renew");
                    renewal_interval
                }
                Err(error) => self.watch.failed("renew", &error).min(renewal_interval),
            };
        }
    }

    /// Renews the session, or opens another if it was lost. `now` counts if the store has no clock of its own.
    pub async fn run_once(&self, now: Timestamp) -> StoreResult<()> {
        // Measured from before the round trip: a slow answer must not lengthen our trust in the lease.
        let asked_at = Instant::now();
        let session = self.lease.session();
        let expires_at = self.store.now(now).await? + self.options.lease;
        if self.store.renew_session(session, expires_at).await? {
            self.lease.renewed(asked_at + self.options.lease);
            return Ok(());
        }
        self.replace(session, now).await
    }

    async fn replace(&self, lost: SessionId, now: Timestamp) -> StoreResult<()> {
        let asked_at = Instant::now();
        let fresh = open(&self.host, &*self.store, &self.options.node, self.options.lease, now).await?;
        tracing::warn!(%lost, %fresh, "the lease was lost, a new session begins");
        self.lease.replaced(fresh, asked_at + self.options.lease);
        self.announcer.session_replaced().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::machine::Event;
    use tickwheel_testkit::fixtures::{at, session_id};
    use tickwheel_testkit::{ManualClock, ModelStore};

    use super::*;
    use crate::announcer::tests::listening::{Listening, listening, shown};

    /// A keeper whose session was opened at the start, and ends 15 seconds later.
    async fn keeper(store: &Arc<ModelStore>) -> (SessionKeeper, Listening) {
        let (announcer, listening) = listening();
        let options = SessionOptions::default();
        let session = open(&Host::default(), &**store, &options.node, options.lease, at(0)).await.unwrap();
        let keeper = SessionKeeper {
            lease: Arc::new(Lease::new(session, Instant::now())),
            options,
            host: Host::default(),
            store: store.clone(),
            watch: StoreWatch::default(),
            clock: Arc::new(ManualClock::at(at(0))),
            announcer,
        };
        (keeper, listening)
    }

    #[tokio::test]
    async fn a_renewed_session_outlives_its_first_lease() {
        let store = Arc::new(ModelStore::new());
        let (keeper, mut listening) = keeper(&store).await;
        let session = keeper.lease.session();
        keeper.run_once(at(10_000)).await.unwrap();
        assert_eq!(store.expire_sessions(session_id(9), at(20_000)).await.unwrap().len(), 0);
        assert!(keeper.lease.covers(Some(session), Instant::now()));
        assert_eq!(listening.heard().planner, shown([]));
    }

    #[tokio::test]
    async fn a_session_that_others_ended_is_replaced_and_everything_is_learned_anew() {
        let store = Arc::new(ModelStore::new());
        let (keeper, mut listening) = keeper(&store).await;
        let lost = keeper.lease.session();
        assert_eq!(store.expire_sessions(session_id(9), at(20_000)).await.unwrap().len(), 1);
        keeper.run_once(at(20_000)).await.unwrap();
        assert_ne!(keeper.lease.session(), lost);
        assert!(keeper.lease.covers(Some(keeper.lease.session()), Instant::now()));
        assert_eq!(listening.heard().planner, shown([Event::StartedOver]));
    }
}
