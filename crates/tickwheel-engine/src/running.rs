//! The attempts this node is running: how many, which can be told to stop, and the slots they take.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_core::JobId;
use tokio::sync::Notify;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    attempts: Mutex<HashMap<JobId, Handle>>,
    slots_freed: AtomicUsize,
    slot_freed: Notify,
    idle: Notify,
}

#[derive(Debug)]
struct Handle {
    stop: Arc<Notify>,
    queue: Arc<str>,
}

/// One running attempt; dropping it frees its slot, however the attempt ended.
pub struct RunningAttempt {
    running: Running,
    job_id: JobId,
    stop: Arc<Notify>,
}

impl Running {
    /// Registers an attempt.
    pub fn start(&self, job_id: JobId, queue: Arc<str>) -> RunningAttempt {
        let stop = Arc::new(Notify::new());
        self.lock().insert(job_id, Handle { stop: stop.clone(), queue });
        RunningAttempt { running: self.clone(), job_id, stop }
    }

    /// Asks an attempt to stop, if it runs here.
    pub fn stop(&self, job_id: JobId) {
        if let Some(handle) = self.lock().get(&job_id) {
            handle.stop.notify_one();
        }
    }

    /// Whether the job runs here.
    pub fn contains(&self, job_id: JobId) -> bool {
        self.lock().contains_key(&job_id)
    }

    /// Attempts by queue.
    pub fn by_queue(&self) -> HashMap<Arc<str>, u64> {
        let mut counts = HashMap::new();
        for handle in self.lock().values() {
            *counts.entry(handle.queue.clone()).or_default() += 1;
        }
        counts
    }

    /// How many attempts run here.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits for slots to become free and says how many did since the last time.
    pub async fn slots_freed(&self) -> usize {
        loop {
            let freed = self.0.slots_freed.swap(0, Ordering::AcqRel);
            if freed > 0 {
                return freed;
            }
            self.0.slot_freed.notified().await;
        }
    }

    /// Waits until nothing runs here.
    pub async fn idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            if self.len() == 0 {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Handle>> {
        self.0.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningAttempt {
    /// Resolves when the attempt is asked to stop.
    pub async fn stop_requested(&self) {
        self.stop.notified().await;
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        let left = {
            let mut attempts = self.running.lock();
            attempts.remove(&self.job_id);
            attempts.len()
        };
        self.running.0.slots_freed.fetch_add(1, Ordering::AcqRel);
        self.running.0.slot_freed.notify_one();
        if left == 0 {
            self.running.0.idle.notify_waiters();
        }
    }
}
