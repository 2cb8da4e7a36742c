//! The lease: how long we can prove that what we have is ours. When we no longer can, handlers are cancelled before
//! anybody else can start their jobs.

use std::time::{Duration, Instant};

use super::Io;
use crate::attempt::CancelReason;

/// What is left unused at the end of a lease, at least.
const MARGIN_MIN: Duration = Duration::from_secs(1);

impl Io {
    /// The server accepted something that was sent at `sent_at`. Measured from before the round trip: a slow answer must
    /// not lengthen our trust.
    pub fn lease_was_renewed(&self, sent_at: Instant, lease: Duration) {
        self.session.heartbeat_was_accepted();
        let until = sent_at + provable(lease);
        self.provable_until.send_if_modified(|known| {
            let is_later = known.is_none_or(|known| until > known);
            if is_later {
                *known = Some(until);
            }
            is_later
        });
    }

    /// Cancels handlers when the lease cannot be proven any more.
    pub async fn lease_loop(&self) {
        let mut provable_until = self.provable_until.subscribe();
        loop {
            let until = *provable_until.borrow_and_update();
            let expired = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = provable_until.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = expired => {
                    self.lease_cannot_be_proven();
                    if provable_until.changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// What ends anyway is offered to the server when it is back.
    fn lease_cannot_be_proven(&self) {
        let attempts = self.session.attempts();
        let cancelled = attempts.iter().filter(|attempt| !self.dispatch.continues(attempt));
        let count = cancelled.filter(|attempt| attempt.cancel(CancelReason::LeaseLost)).count();
        tracing::error!(cancelled = count, "lease lost: no heartbeat was accepted for too long");
    }
}

fn provable(lease: Duration) -> Duration {
    lease.saturating_sub(MARGIN_MIN.max(lease / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_trusted_for_a_second_or_a_tenth_less_than_it_lasts() {
        assert_eq!(provable(Duration::from_secs(5)), Duration::from_secs(4));
        assert_eq!(provable(Duration::from_secs(30)), Duration::from_secs(27));
    }
}
