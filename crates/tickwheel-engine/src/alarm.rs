//! Wakes the planner at a moment, to a tenth of a millisecond.
//!
//! The runtime's own timers count whole milliseconds and round up, which would make every job one to two milliseconds
//! late. One thread that waits on a condition variable is as punctual as the operating system, and costs nothing while
//! it waits. Only a simulation, whose time passes in whole milliseconds, uses the runtime's.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// See the module. Its thread ends when this is dropped.
#[derive(Debug)]
pub struct Alarm(Kind);

#[derive(Debug)]
enum Kind {
    Thread(Arc<Shared>),
    Runtime(Mutex<Option<Instant>>),
}

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
    /// An alarm with a thread of its own, that is not set.
    pub fn with_thread() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let ours = shared.clone();
        std::thread::Builder::new().name("tickwheel-alarm".into()).spawn(move || ours.keep_watch())?;
        Ok(Self(Kind::Thread(shared)))
    }

    /// An alarm on the runtime's time, that is not set.
    pub fn of_runtime() -> Self {
        Self(Kind::Runtime(Mutex::new(None)))
    }

    /// Rings once at that moment, or at once if it has passed. Replaces what was set before; nobody may be
    /// waiting for it meanwhile.
    pub fn set(&self, at: Instant) {
        match &self.0 {
            Kind::Thread(shared) => {
                lock(&shared.setting).at = Some(at);
                shared.changed.notify_one();
            }
            Kind::Runtime(setting) => *lock(setting) = Some(at),
        }
    }

    /// Resolves when it rings, or has rung since the last time.
    pub async fn rings(&self) {
        match &self.0 {
            Kind::Thread(shared) => shared.ringing.notified().await,
            Kind::Runtime(setting) => {
                let at = *lock(setting);
                match at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
                *lock(setting) = None;
            }
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Kind::Thread(shared) = &self.0 {
            lock(&shared.setting).closed = true;
            shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn keep_watch(&self) {
        let mut setting = lock(&self.setting);
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_at_its_moment_and_never_before() {
        let alarm = Alarm::with_thread().unwrap();
        for ms in [0, 1, 5, 20] {
            let at = Instant::now() + Duration::from_millis(ms);
            alarm.set(at);
            alarm.rings().await;
            assert!(Instant::now() >= at);
        }
    }

    #[tokio::test]
    async fn an_earlier_moment_replaces_a_later_one() {
        let alarm = Alarm::with_thread().unwrap();
        alarm.set(Instant::now() + Duration::from_secs(3_600));
        alarm.set(Instant::now() + Duration::from_millis(1));
        tokio::time::timeout(Duration::from_secs(10), alarm.rings()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn on_simulated_time_it_rings_once_at_its_moment() {
        let alarm = Alarm::of_runtime();
        let at = Instant::now() + Duration::from_secs(3_600);
        alarm.set(at + Duration::from_secs(1));
        alarm.set(at);
        alarm.rings().await;
        assert_eq!(Instant::now(), at);
        assert!(tokio::time::timeout(Duration::from_secs(3_600), alarm.rings()).await.is_err());
    }
}
