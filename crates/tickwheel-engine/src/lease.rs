//! This node's lease as its loops see it: under which session they act, and until when they may believe in it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use tickwheel_core::{SessionId, Timestamp};
use tokio::sync::Notify;

/// See the module.
#[derive(Debug)]
pub struct Lease {
    session: RwLock<SessionId>,
    trusted_until_ms: AtomicI64,
    doubted: Notify,
}

impl Lease {
    /// A fresh session that nobody may end before `trusted_until`.
    pub fn new(session: SessionId, trusted_until: Timestamp) -> Self {
        Self {
            session: RwLock::new(session),
            trusted_until_ms: AtomicI64::new(trusted_until.as_millis()),
            doubted: Notify::new(),
        }
    }

    /// Under which session to act.
    pub fn session(&self) -> SessionId {
        *self.session.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody else can have taken this node's jobs yet. A process that stood still finds out here.
    pub fn is_trusted(&self, now: Timestamp) -> bool {
        now.as_millis() < self.trusted_until_ms.load(Ordering::Acquire)
    }

    /// The store has prolonged it.
    pub fn renewed(&self, trusted_until: Timestamp) {
        self.trusted_until_ms.store(trusted_until.as_millis(), Ordering::Release);
    }

    /// Another session has taken its place.
    pub fn replaced(&self, session: SessionId, trusted_until: Timestamp) {
        *self.session.write().unwrap_or_else(PoisonError::into_inner) = session;
        self.renewed(trusted_until);
    }

    /// Something looks as if the session had ended: ask the store soon.
    pub fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Resolves when somebody doubts.
    pub async fn doubted(&self) {
        self.doubted.notified().await;
    }
}
