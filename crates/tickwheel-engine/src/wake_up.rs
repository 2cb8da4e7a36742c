//! A wake-up: tells a loop that there is something to do, and nothing else.
//!
//! Wake-ups that arrive while the loop works merge into one. The loop then asks the store what there is to do, so a
//! wake-up that is lost costs time and nothing else.

use std::sync::Arc;

use tokio::sync::Notify;

/// Wakes one loop. Not `Clone`: the [`Announcer`](crate::announcer::Announcer) has it, and is told what happened.
#[derive(Debug)]
pub struct WakeUpSender(Arc<Notify>);

/// The loop's end.
#[derive(Debug)]
pub struct WakeUpReceiver(Arc<Notify>);

/// Both ends.
pub fn channel() -> (WakeUpSender, WakeUpReceiver) {
    let notify = Arc::new(Notify::new());
    (WakeUpSender(notify.clone()), WakeUpReceiver(notify))
}

impl WakeUpSender {
    /// Wakes the loop, at once or as soon as it waits again.
    pub fn send(&self) {
        self.0.notify_one();
    }
}

impl WakeUpReceiver {
    /// Resolves when there was a wake-up since the last time.
    pub async fn received(&self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn wake_ups_that_nobody_waits_for_merge_into_one() {
        let (sender, receiver) = channel();
        assert!(receiver.received().now_or_never().is_none());
        sender.send();
        sender.send();
        assert!(receiver.received().now_or_never().is_some());
        assert!(receiver.received().now_or_never().is_none());
    }
}
