//! This node's lease as its loops see it: under which session they act, and until when they may believe in it.
//!
//! Trust is measured on the monotonic clock. A wall clock that is set, forwards or back, neither ends it nor lengthens
//! it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_core::SessionId;
use tokio::sync::Notify;
use tokio::time::Instant;

/// See the module.
#[derive(Debug)]
pub struct Lease {
    held: Mutex<Held>,
    /// Those who wait hear of it in the order in which they came.
    changed: Notify,
    renewal_wanted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    session: SessionId,
    /// `None`: nothing is to be started any more.
    trusted_until: Option<Instant>,
    /// When trust came back after it had run out; `None`: it never has.
    trusted_again_at: Option<Instant>,
}

impl Held {
    fn is_trusted(&self, now: Instant) -> bool {
        self.trusted_until.is_some_and(|until| now < until)
    }
}

impl Lease {
    /// A fresh session that nobody may end before `trusted_until`.
    pub fn new(session: SessionId, trusted_until: Instant) -> Self {
        let held = Held { session, trusted_until: Some(trusted_until), trusted_again_at: None };
        Self { held: Mutex::new(held), changed: Notify::new(), renewal_wanted: Notify::new() }
    }

    /// Under which session to act.
    pub fn session(&self) -> SessionId {
        self.held().session
    }

    /// Whether what was taken under `session` may be started: that is still our session, and nobody else can have taken
    /// its jobs yet. A process that stood still finds out here.
    pub fn covers(&self, session: Option<SessionId>, now: Instant) -> bool {
        let held = self.held();
        session == Some(held.session) && held.is_trusted(now)
    }

    /// Waits until it is trusted; `false` if it was given up. Whoever wants to take jobs waits here, so nothing is
    /// taken that could not be started.
    pub async fn trusted(&self) -> bool {
        loop {
            // Before the look: a change in between is heard of.
            let changed = self.changed.notified();
            let held = *self.held();
            if held.trusted_until.is_none() || held.is_trusted(Instant::now()) {
                return held.trusted_until.is_some();
            }
            self.request_renewal();
            changed.await;
        }
    }

    /// Whether it has been trusted for so long, or ever since it began. Who was cut off from the store cannot tell at
    /// once who else is dead: they may be coming back as well.
    pub fn is_steady(&self, now: Instant, for_at_least: Duration) -> bool {
        let held = self.held();
        held.is_trusted(now) && held.trusted_again_at.is_none_or(|at| now >= at + for_at_least)
    }

    /// The store has prolonged it.
    pub fn renewed(&self, trusted_until: Instant) {
        let session = self.session();
        self.replaced(session, trusted_until);
    }

    /// Another session has taken its place.
    pub fn replaced(&self, session: SessionId, trusted_until: Instant) {
        let now = Instant::now();
        let mut held = self.held();
        if !held.is_trusted(now) {
            held.trusted_again_at = Some(now);
        }
        held.session = session;
        held.trusted_until = held.trusted_until.map(|_| trusted_until);
        drop(held);
        self.changed.notify_waiters();
    }

    /// From now on nothing is started. Whatever runs still hangs on the session, which is renewed as before.
    pub fn give_up(&self) {
        self.held().trusted_until = None;
        self.changed.notify_waiters();
    }

    /// Something looks as if the session had ended: ask the store soon.
    pub fn request_renewal(&self) {
        self.renewal_wanted.notify_one();
    }

    /// Resolves when somebody asked for a renewal.
    pub async fn renewal_requested(&self) {
        self.renewal_wanted.notified().await;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    fn session() -> SessionId {
        SessionId::from_uuid(Uuid::from_u128(1))
    }

    #[tokio::test]
    async fn whoever_wants_to_take_jobs_waits_for_the_renewal() {
        let lease = Lease::new(session(), Instant::now());
        let renew = async {
            lease.renewal_requested().await;
            lease.renewed(Instant::now() + LEASE);
        };
        let (trusted, ()) = tokio::join!(lease.trusted(), renew);
        assert!(trusted && lease.held().is_trusted(Instant::now()));
    }

    #[tokio::test]
    async fn a_lease_that_was_given_up_is_not_trusted_again() {
        let lease = Lease::new(session(), Instant::now() + LEASE);
        lease.give_up();
        lease.renewed(Instant::now() + LEASE);
        assert!(!lease.trusted().await && !lease.held().is_trusted(Instant::now()));
    }

    #[test]
    fn who_was_cut_off_gives_the_others_time() {
        let now = Instant::now();
        let lease = Lease::new(session(), now + LEASE);
        assert!(lease.is_steady(now, LEASE / 3), "who has just started is not in doubt about the dead");
        let lease = Lease::new(session(), now);
        lease.renewed(now + LEASE);
        assert!(!lease.is_steady(now, LEASE / 3));
        assert!(lease.is_steady(now + LEASE / 2, LEASE / 3));
    }
}
