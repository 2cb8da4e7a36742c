//! Wakes the planner at a moment, to a tenth of a millisecond.
//!
//! The runtime's own timers count whole milliseconds and round up, which would make every job one to two milliseconds
//! late. One thread that waits on a condition variable is as punctual as the operating system, and costs nothing while
//! it waits.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

/// See the module. The thread ends when this is dropped.
#[derive(Debug)]
pub struct Alarm(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    setting: Mutex<Setting>,
    changed: Condvar,
    ringing: Notify,
}

#[derive(Clone, Copy, Debug, Default)]
struct Setting {
    at: Option<Instant>,
    closed: bool,
}

impl Alarm {
    /// An alarm that is not set.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        std::thread::Builder::new().name("tickwheel-alarm".into()).spawn(move || ours.keep_watch())?;
        Ok(Self(shared))
    }

    /// Rings once at that moment, or at once if it has passed. Replaces what was set before.
    pub fn set(&self, at: Instant) {
        self.0.lock().at = Some(at);
        self.0.changed.notify_one();
    }

    /// Resolves when it rings, or has rung since the last time.
    pub async fn rings(&self) {
        self.0.ringing.notified().await;
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn keep_watch(&self) {
        let mut setting = self.lock();
        while !setting.closed {
            let wait = setting.at.map(|at| at.saturating_duration_since(Instant::now()));
            setting = match wait {
                Some(wait) if wait.is_zero() => {
                    setting.at = None;
                    self.ringing.notify_one();
                    setting
                }
                Some(wait) => {
                    self.changed.wait_timeout(setting, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(setting).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Setting> {
        self.setting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_at_its_moment_and_never_before() {
        let alarm = Alarm::start().unwrap();
        for ms in [0, 1, 5, 20] {
            let at = Instant::now() + Duration::from_millis(ms);
            alarm.set(at);
            alarm.rings().await;
            assert!(Instant::now() >= at);
        }
    }

    #[tokio::test]
    async fn an_earlier_moment_replaces_a_later_one() {
        let alarm = Alarm::start().unwrap();
        alarm.set(Instant::now() + Duration::from_secs(3_600));
        alarm.set(Instant::now() + Duration::from_millis(1));
        tokio::time::timeout(Duration::from_secs(10), alarm.rings()).await.unwrap();
    }
}
